import { expect, it } from 'vitest';
import { stopped } from '../support/harness/stops.ts';

it('the error for a disposal that hangs names the line that put the resource on its stack', async () => {
  const never = new Promise<void>(() => undefined);
  const stack = new AsyncDisposableStack();
  stack.defer(() => undefined);
  stack.adopt('held', () => never);
  stack.use({ [Symbol.asyncDispose]: () => Promise.resolve() });
  await expect(stopped(stack.move(), 50)).rejects.toThrow(/hangs at .*stops\.test\.ts:8:\d+$/);
});

import { expect, it } from 'vitest';
import { stopped } from '../support/harness/stops.ts';

it('a stop that hangs is named by the line that put it on its stack', async () => {
  const never = new Promise<void>(() => undefined);
  const stack = new AsyncDisposableStack();
  stack.defer(() => undefined);
  stack.adopt('held', () => never);
  stack.use({ [Symbol.asyncDispose]: () => Promise.resolve() });
  await expect(stopped(stack.move(), 50)).rejects.toThrow(/hangs at .*stops\.test\.ts:8:\d+$/);
});

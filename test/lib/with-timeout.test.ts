import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { expect, it } from 'vitest';
import { withTimeout } from '../../src/lib/with-timeout.ts';
import { blockEventLoop } from '../support/lib/block-event-loop.ts';

const TIMEOUT_MS = 200;

it('resolves or rejects as the work does', async () => {
  expect(await withTimeout(Promise.resolve('done'), TIMEOUT_MS)).toBe('done');
  await expect(withTimeout(Promise.reject(new Error('refused')), TIMEOUT_MS)).rejects.toThrow('refused');
});

it('rejects when the work takes longer than the timeout, and names the timeout', async () => {
  await expect(withTimeout(new Promise(() => undefined), TIMEOUT_MS)).rejects.toThrow('no response within 200 ms');
});

it('reads data that arrived while the event loop was blocked before it applies the timeout', async () => {
  const work = once(createReadStream(import.meta.filename), 'data').then(() => 'read');
  const answer = withTimeout(work, TIMEOUT_MS);
  blockEventLoop(2 * TIMEOUT_MS);
  expect(await answer).toBe('read');
});

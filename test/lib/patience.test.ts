import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { expect, it } from 'vitest';
import { inTime } from '../../src/lib/patience.ts';
import { standStill } from './stand-still.ts';

const PATIENCE_MS = 200;

it('gives what the work gives', async () => {
  expect(await inTime(Promise.resolve('done'), PATIENCE_MS)).toBe('done');
  await expect(inTime(Promise.reject(new Error('refused')), PATIENCE_MS)).rejects.toThrow('refused');
});

it('gives work up that does not end, and tells after how long', async () => {
  await expect(inTime(new Promise(() => undefined), PATIENCE_MS)).rejects.toThrow('no answer in 200 ms');
});

it('reads first what has come while the process stood still', async () => {
  const work = once(createReadStream(import.meta.filename), 'data').then(() => 'read');
  const answer = inTime(work, PATIENCE_MS);
  standStill(2 * PATIENCE_MS);
  expect(await answer).toBe('read');
});

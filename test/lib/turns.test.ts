import { setImmediate as nextIteration } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { inTurn } from '../../src/lib/turns.ts';

let nowMs = 0;
beforeEach(async () => {
  await nextIteration();
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
});
afterEach(() => vi.restoreAllMocks());

/** Does a piece of work that takes so many milliseconds. */
const takes = (ms: number) => {
  nowMs += ms;
};

it('D6-24: work runs at once, and gives its result or error, as long as no other has run for long', async () => {
  expect(inTurn(() => 'done')).toBe('done');
  expect(() => inTurn(() => raise('failed'))).toThrow('failed');
  takes(10);
  await expect(inTurn(async () => 'done')).resolves.toBe('done');
  takes(10);
  await expect(inTurn(() => raise('failed'))).rejects.toThrow('failed');
});

it('D6-24: whatever comes at once, the event loop goes round after at most 5 ms of it, in the order of its coming', async () => {
  const ran: number[] = [];
  const perIteration: number[] = [];
  const work = Array.from({ length: 40 }, (_, at) =>
    inTurn(() => {
      ran.push(at);
      takes(1);
    }),
  );
  for (let seen = 0; ran.length < 40; seen = ran.length) {
    await nextIteration();
    perIteration.push(ran.length - seen);
  }
  await Promise.all(work);
  expect(ran).toEqual(ran.toSorted((one, other) => one - other));
  expect(Math.max(...perIteration)).toBeLessThanOrEqual(10);
  expect(perIteration.length).toBeGreaterThanOrEqual(4);
});

it('D6-24: a loop that always has more to do takes turns with another one', async () => {
  const order: string[] = [];
  const loop = async (name: string) => {
    for (let count = 0; count < 6; count += 1) {
      await inTurn(() => {
        order.push(name);
        takes(6);
      });
    }
  };
  await Promise.all([loop('a'), loop('b')]);
  expect(order.slice(2).join('')).toMatch(/^(?:ab)+$|^(?:ba)+$/);
});

function raise(message: string): never {
  throw new Error(message);
}

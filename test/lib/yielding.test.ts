import { setImmediate as nextIteration } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { notePresence, runCooperatively, type Worker } from '../../src/lib/yielding.ts';

const clock = vi.hoisted(() => ({ nowMs: 1e9 }));
// A rest passes at once.
vi.mock(import('node:timers/promises'), async (original) => {
  const timers = await original();
  const pass = async (ms = 0) => {
    clock.nowMs += ms;
    await timers.setImmediate();
  };
  return { ...timers, setTimeout: pass as typeof timers.setTimeout };
});

beforeEach(async () => {
  await nextIteration();
  // Rests of earlier tests are over.
  clock.nowMs += 1e6;
  vi.spyOn(performance, 'now').mockImplementation(() => clock.nowMs);
});
afterEach(() => vi.restoreAllMocks());

/** Does a piece of work that takes so many milliseconds. */
const takes = (ms: number) => {
  clock.nowMs += ms;
};

const workerOf = (key: string): Worker => ({ key });

/** Does pieces of work, one after the other, and notes the worker of each. */
async function loop(ran: string[], worker: Worker, { pieces, ms }: { pieces: number; ms: number }): Promise<void> {
  for (let count = 0; count < pieces; count += 1) {
    await runCooperatively(() => {
      ran.push(worker.key);
      takes(ms);
    }, worker);
  }
}

/** Returns the workers in the order of their slices: pieces of one worker that follow each other are one slice. */
const slicesOf = (ran: readonly string[]) => ran.filter((worker, at) => worker !== ran[at - 1]).join('');

it('D6-24: work runs synchronously and returns its result or error until earlier work has used up the time slice', async () => {
  expect(runCooperatively(() => 'done', undefined)).toBe('done');
  expect(() => runCooperatively(() => raise('failed'), undefined)).toThrow('failed');
  takes(10);
  await expect(runCooperatively(async () => 'done', undefined)).resolves.toBe('done');
  takes(10);
  await expect(runCooperatively(() => raise('failed'), undefined)).rejects.toThrow('failed');
});

it('D6-24: of many jobs at once the event loop runs a slice per iteration, in order of arrival', async () => {
  const ran: number[] = [];
  const perIteration: number[] = [];
  const work = Array.from({ length: 40 }, (_, at) =>
    runCooperatively(() => {
      ran.push(at);
      takes(1);
    }, undefined),
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

it('D6-26: three workers that always have more work get one slice each in turn', async () => {
  const ran: string[] = [];
  await Promise.all(['a', 'b', 'c'].map((key) => loop(ran, workerOf(key), { pieces: 30, ms: 1 })));
  expect(slicesOf(ran)).toMatch(/^(?:abc){6,8}a?b?$/);
});

it('D6-26: a worker with 18 jobs gets one slice per round, like a worker with one job', async () => {
  const ran: string[] = [];
  const many = Array.from({ length: 18 }, () => loop(ran, workerOf('a'), { pieces: 10, ms: 1 }));
  await Promise.all([...many, loop(ran, workerOf('b'), { pieces: 30, ms: 1 })]);
  expect(slicesOf(ran)).toMatch(/^(?:ab){6,8}a$/);
});

it('D6-26: work that fits its first slice does not wait for workers that have used theirs', async () => {
  const ran: string[] = [];
  const long = loop(ran, workerOf('a'), { pieces: 10, ms: 6 });
  // The slice that workers without a place in the round share has begun anew.
  await nextIteration();
  await nextIteration();
  expect(runCooperatively(() => 'at once', workerOf('b'))).toBe('at once');
  expect(runCooperatively(() => 'later', workerOf('a'))).toBeInstanceOf(Promise);
  await long;
});

it('D6-26: while two are present, one whose pieces cannot be divided waits after each for as long as it took beyond its slice', async () => {
  for (const key of ['a', 'b']) notePresence(key);
  const startedAtMs = clock.nowMs;
  const ran: string[] = [];
  await Promise.all([loop(ran, workerOf('a'), { pieces: 2, ms: 6 }), loop(ran, workerOf('b'), { pieces: 5, ms: 30 })]);
  // Four of the long pieces wait for their turn; three rests of 25 ms lie between them.
  expect(clock.nowMs - startedAtMs).toBeGreaterThanOrEqual(2 * 6 + 5 * 30 + 3 * 25);
});

it('D6-26: a worker that is alone has no rests', async () => {
  notePresence('a');
  const startedAtMs = clock.nowMs;
  await loop([], workerOf('a'), { pieces: 5, ms: 30 });
  expect(clock.nowMs - startedAtMs).toBe(5 * 30);
});

it('D6-26: while workers rest, others have their turns', async () => {
  for (const key of ['a', 'b']) notePresence(key);
  const ran: string[] = [];
  const long = loop(ran, workerOf('a'), { pieces: 4, ms: 60 });
  await Promise.all([long, loop(ran, workerOf('b'), { pieces: 40, ms: 3 })]);
  // In a rest of 55 ms the other does about 16 pieces.
  expect(ran.join('')).toMatch(/ab{14,18}ab{14,18}a/);
});

it('D6-26: a rest is ended neither by a shorter one nor with the interval in which workers are counted', async () => {
  const note = () => ['a', 'b', 'c'].forEach(notePresence);
  note();
  const ran: string[] = [];
  const others = async () => {
    for (let count = 0; count < 500; count += 1) {
      note();
      await loop(ran, workerOf('c'), { pieces: 1, ms: 3 });
    }
  };
  const long = loop(ran, workerOf('a'), { pieces: 3, ms: 1_200 });
  await Promise.all([long, loop(ran, workerOf('b'), { pieces: 2, ms: 12 }), others()]);
  // The first piece need not wait. After the second, a rest of 1,195 ms has time for more than 300 pieces of 3 ms.
  expect(ran.join('').split('a')[2]?.length).toBeGreaterThan(300);
});

it('D6-25: steps of a begun request, such as the operations of a batch, keep their order', async () => {
  const ran: string[] = [];
  const step = (name: string, isBegun: boolean) =>
    runCooperatively(() => void ran.push(name), workerOf('a'), { isBegun });
  takes(6);
  const first = loop(ran, workerOf('a'), { pieces: 2, ms: 6 });
  await Promise.all([first, step('x', false), ...['0', '1', '2', '3'].map((name) => step(name, true))]);
  expect(ran.join('')).toMatch(/0123.*x/);
});

it('D6-25: a step of a request that is begun goes before requests that are not', async () => {
  const ran: string[] = [];
  const request = async (name: string) => {
    for (const isBegun of [false, true, true]) {
      await runCooperatively(
        () => {
          ran.push(name);
          takes(6);
        },
        workerOf('a'),
        { isBegun },
      );
    }
  };
  await Promise.all(['1', '2', '3'].map(request));
  expect(slicesOf(ran)).toBe('123');
});

it('D6-26: the remaining work of a stopped worker does not run, and is rejected with the reason', async () => {
  const ran: string[] = [];
  const worker: { key: string; stopped?: Error } = { key: 'a' };
  const leaving = Array.from({ length: 18 }, () => loop(ran, worker, { pieces: 30, ms: 6 }));
  const settled = Promise.allSettled([...leaving, loop(ran, workerOf('a'), { pieces: 2, ms: 6 })]);
  worker.stopped = new Error('the client has left');
  const results = await settled;
  expect(results.map(({ status }) => status)).toEqual([...Array(18).fill('rejected'), 'fulfilled']);
  expect(results[0]).toMatchObject({ reason: worker.stopped });
  // The piece that ran at once, and the two of the other request.
  expect(ran).toHaveLength(3);
});

function raise(message: string): never {
  throw new Error(message);
}

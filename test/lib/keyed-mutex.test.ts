import fc from 'fast-check';
import { expect, it } from 'vitest';
import { KeyedMutex } from '../../src/lib/semaphore.ts';

class Refused extends Error {}

it('in any schedule jobs with one key run one at a time and in order, also after a job that fails', async () => {
  const works = fc.array(fc.record({ key: fc.constantFrom('a', 'b'), fails: fc.boolean() }), { maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(works, fc.scheduler(), async (all, scheduler) => {
      const mutex = new KeyedMutex();
      const running = new Set<string>();
      const ran: number[] = [];
      const runs = all.map(({ key, fails }, number) =>
        mutex.run(key, async () => {
          expect(running).not.toContain(key);
          running.add(key);
          ran.push(number);
          await scheduler.schedule(Promise.resolve());
          running.delete(key);
          if (fails) throw new Error('failed');
        }),
      );
      await scheduler.waitFor(Promise.allSettled(runs));
      for (const key of ['a', 'b']) {
        const numbers = ran.filter((number) => all[number]?.key === key);
        expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
      }
      expect(ran).toHaveLength(all.length);
    }),
  );
});

it('rejects a job when the queue of its key is full; other keys are not affected', async () => {
  const mutex = new KeyedMutex({ maxWaiting: 1, refusal: () => new Refused() });
  const { promise, resolve } = Promise.withResolvers<void>();
  const runs = [mutex.run('a', () => promise), mutex.run('a', () => promise)];
  await expect(mutex.run('a', () => promise)).rejects.toThrow(Refused);
  runs.push(mutex.run('b', () => promise));
  resolve();
  await Promise.all(runs);
  await mutex.run('a', () => promise);
});

it('a job aborted while it waits never starts, and jobs behind it still wait for the running one', async () => {
  const mutex = new KeyedMutex();
  const first = Promise.withResolvers<void>();
  const begun: string[] = [];
  const work = (name: string, until: Promise<void> = Promise.resolve()) => {
    return () => {
      begun.push(name);
      return until;
    };
  };
  const controller = new AbortController();
  const runs = [mutex.run('a', work('first', first.promise)), mutex.run('a', work('second'), controller.signal)];
  runs.push(mutex.run('a', work('third')));
  controller.abort(new Refused());
  await expect(runs[1]).rejects.toThrow(Refused);
  expect(begun).toEqual(['first']);
  first.resolve();
  await Promise.all([runs[0], runs[2]]);
  expect(begun).toEqual(['first', 'third']);
});

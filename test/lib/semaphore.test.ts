import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Semaphore } from '../../src/lib/semaphore.ts';

class SentAway extends Error {}

const refusal = () => new SentAway();

/** A semaphore whose works end when the test says so. */
function driven(options: {
  permits: number;
  maxWaiting: number;
  reserved?: number;
  mayBorrow?: boolean;
  waitMs?: number;
}) {
  const semaphore = new Semaphore({ refusal, ...options });
  const going: { nodeId: string | undefined; number: number; end(fails?: boolean): void }[] = [];
  const outcomes: ('ended' | 'failed' | 'sent away')[] = [];
  const begun: (string | undefined)[] = [];
  let number = 0;
  return {
    semaphore,
    going,
    outcomes,
    begun,
    enter(nodeId: string | undefined) {
      const one = number++;
      semaphore
        .run(nodeId, async () => {
          const { promise, resolve, reject } = Promise.withResolvers<void>();
          begun.push(nodeId);
          going.push({ nodeId, number: one, end: (fails) => (fails ? reject(new Error('failed')) : resolve()) });
          await promise;
        })
        .then(
          () => outcomes.push('ended'),
          (error: unknown) => outcomes.push(error instanceof SentAway ? 'sent away' : 'failed'),
        );
    },
    async end(index = 0, fails = false) {
      going.splice(index, 1)[0]?.end(fails);
      await setImmediate();
    },
    /** Ends all that goes on and all that comes to. */
    async endAll() {
      while (going.length > 0) await this.end();
    },
  };
}

const nodes = ['a', 'b', 'c', 'd'];
const steps = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: fc.record({ enter: fc.constantFrom(...nodes, 'a', 'a', 'a', undefined) }) },
    { weight: 2, arbitrary: fc.record({ end: fc.nat(20), fails: fc.boolean() }) },
  ),
  { maxLength: 120 },
);
const limits = fc.record({
  permits: fc.integer({ min: 1, max: 8 }),
  maxWaiting: fc.integer({ min: 2, max: 12 }),
  mayBorrow: fc.boolean(),
});

describe('semaphore', () => {
  it('D2-25: in any order of entries and exits the limits hold, no runnable job waits, and no permit is lost', async () => {
    await fc.assert(
      fc.asyncProperty(limits, steps, async ({ permits, maxWaiting, mayBorrow }, all) => {
        const reserved = mayBorrow || permits < 3 ? 0 : 1;
        const driver = driven({ permits, maxWaiting, mayBorrow, reserved });
        const { semaphore, going, outcomes } = driver;
        const most = Math.max(1, Math.floor(permits / 2));
        let entered = 0;
        for (const step of all) {
          const before = new Map(nodes.map((node) => [node, semaphore.held(node)]));
          if ('enter' in step) {
            driver.enter(step.enter);
            entered += 1;
            await setImmediate();
          } else await driver.end(step.end % Math.max(1, going.length), step.fails);

          expect(semaphore.held()).toBe(going.length);
          expect(semaphore.held()).toBeLessThanOrEqual(permits);
          const ofNodes = nodes.map((node) => semaphore.held(node)).reduce((a, b) => a + b);
          expect(ofNodes).toBeLessThanOrEqual(permits - reserved);
          const waitingOf = nodes.map((node) => semaphore.waiting(node));
          expect(waitingOf.reduce((a, b) => a + b)).toBeLessThanOrEqual(maxWaiting);
          for (const node of nodes) {
            const doOthersWait = nodes.some((other) => other !== node && semaphore.waiting(other) > 0);
            if (doOthersWait) expect(semaphore.waiting(node)).toBeLessThanOrEqual(Math.floor(maxWaiting / 2));
            if (!mayBorrow) expect(semaphore.held(node)).toBeLessThanOrEqual(most);
            if (doOthersWait && semaphore.held(node) > most) {
              expect(semaphore.held(node)).toBeLessThanOrEqual(before.get(node) ?? 0);
            }
            if (semaphore.waiting(node) > 0) {
              const isFull = semaphore.held() === permits || ofNodes === permits - reserved;
              expect(isFull || semaphore.held(node) >= most).toBe(true);
            }
          }
        }
        await driver.endAll();
        expect([semaphore.held(), semaphore.waiting()]).toEqual([0, 0]);
        expect(outcomes).toHaveLength(entered);
      }),
      { numRuns: 300 },
    );
  });

  it('D2-25: a node that queues behind another is next, and then the two alternate', async () => {
    const driver = driven({ permits: 1, maxWaiting: 100 });
    for (let i = 0; i < 20; i += 1) driver.enter('a');
    for (let i = 0; i < 3; i += 1) driver.enter('b');
    await driver.endAll();
    expect(driver.begun.slice(0, 7)).toEqual(['a', 'a', 'b', 'a', 'b', 'a', 'b']);
    expect(driver.outcomes.every((outcome) => outcome === 'ended')).toBe(true);
  });

  it('a waiting node starts before any other node starts twice, however many nodes keep arriving', async () => {
    const driver = driven({ permits: 1, maxWaiting: 1_000 });
    for (const node of ['x', ...nodes]) for (let i = 0; i < 20; i += 1) driver.enter(node);
    await driver.end();
    driver.enter('late');
    for (let i = 0; i < 6; i += 1) await driver.end();
    expect(driver.begun.slice(2)).toContain('late');
    await driver.endAll();
  });

  it('D2-25: a queue that one node has filled is cut in half for another node, newest jobs first', async () => {
    const driver = driven({ permits: 2, maxWaiting: 8 });
    for (let i = 0; i < 9; i += 1) driver.enter('a');
    driver.enter('a');
    driver.enter('b');
    driver.enter('b');
    await setImmediate();
    expect(driver.semaphore.waiting('a')).toBe(4);
    expect(driver.semaphore.waiting('b')).toBe(1);
    expect(driver.outcomes).toEqual(Array.from({ length: 5 }, () => 'sent away'));
    expect(driver.semaphore.held('b')).toBe(1);
    await driver.endAll();
    expect(driver.outcomes.filter((outcome) => outcome === 'ended')).toHaveLength(7);
  });

  it('a third node enters a queue that two have filled: the node with most waiting jobs loses one', async () => {
    const driver = driven({ permits: 1, maxWaiting: 8 });
    driver.enter('a');
    for (let i = 0; i < 8; i += 1) for (const node of ['a', 'b']) driver.enter(node);
    for (let i = 0; i < 8; i += 1) driver.enter('c');
    expect(nodes.map((node) => driver.semaphore.waiting(node)).sort()).toEqual([0, 2, 3, 3]);
    await driver.endAll();
  });

  it('jobs without a node have reserved permits that nodes cannot use, and are never rejected', async () => {
    const driver = driven({ permits: 10, reserved: 2, maxWaiting: 20 });
    for (let i = 0; i < 20; i += 1) for (const node of nodes) driver.enter(node);
    expect(driver.semaphore.held()).toBe(8);
    for (let i = 0; i < 100; i += 1) driver.enter(undefined);
    expect(driver.semaphore.held('')).toBe(2);
    await driver.endAll();
    expect(driver.begun.filter((node) => node === undefined)).toHaveLength(100);
  });

  it('a single node gets every permit where borrowing is allowed, and half of them where it is not', async () => {
    for (const [mayBorrow, permits] of [
      [true, 6],
      [false, 3],
    ] as const) {
      const driver = driven({ permits: 6, maxWaiting: 20, mayBorrow });
      for (let i = 0; i < 10; i += 1) driver.enter('a');
      expect(driver.semaphore.held('a')).toBe(permits);
      await driver.endAll();
    }
  });

  it('a job that waits longer than the limit is rejected and releases its position in the queue', async () => {
    const driver = driven({ permits: 1, maxWaiting: 10, waitMs: 20 });
    driver.enter('a');
    driver.enter('a');
    driver.enter('b');
    driver.enter(undefined);
    await expect.poll(() => driver.outcomes).toEqual(['sent away', 'sent away']);
    expect(driver.semaphore.waiting('')).toBe(1);
    await driver.endAll();
    expect([driver.semaphore.held(), driver.semaphore.waiting()]).toEqual([0, 0]);
    driver.enter('a');
    expect(driver.semaphore.held('a')).toBe(1);
    await driver.endAll();
  });

  it('jobs without a key run in order of arrival, and an aborted job leaves the queue with its reason', async () => {
    const semaphore = new Semaphore({ permits: 1 });
    const begun: number[] = [];
    const ends = Array.from({ length: 3 }, () => Promise.withResolvers<void>());
    const controllers = ends.map(() => new AbortController());
    const runs = ends.map(({ promise }, number) =>
      semaphore.run(
        undefined,
        () => {
          begun.push(number);
          return promise;
        },
        controllers[number]?.signal,
      ),
    );
    expect(semaphore.waiting()).toBe(2);
    const reason = new Error('left');
    controllers[1]?.abort(reason);
    await expect(runs[1]).rejects.toBe(reason);
    for (const { resolve } of ends) resolve();
    await Promise.all([runs[0], runs[2]]);
    expect(begun).toEqual([0, 2]);
    await expect(semaphore.run(undefined, async () => 1, controllers[1]?.signal)).rejects.toBe(reason);
    expect([semaphore.held(), semaphore.waiting()]).toEqual([0, 0]);
  });
});

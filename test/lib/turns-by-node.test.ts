import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TurnsByNode } from '../../src/lib/turns-by-node.ts';

class SentAway extends Error {}

const refusal = () => new SentAway();

/** Turns whose works end when the test says so. */
function driven(limits: { atOnce: number; waiting: number; kept?: number; lends?: boolean; waitMs?: number }) {
  const turns = new TurnsByNode({ kept: 0, lends: false, refusal, ...limits });
  const going: { nodeId: string | undefined; number: number; end(fails?: boolean): void }[] = [];
  const outcomes: ('ended' | 'failed' | 'sent away')[] = [];
  const begun: (string | undefined)[] = [];
  let number = 0;
  return {
    turns,
    going,
    outcomes,
    begun,
    enter(nodeId: string | undefined) {
      const one = number++;
      turns
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
  atOnce: fc.integer({ min: 1, max: 8 }),
  waiting: fc.integer({ min: 2, max: 12 }),
  lends: fc.boolean(),
});

describe('turns by node', () => {
  it('D2-25: in any order of arrivals and ends, bounds hold, nobody waits who may begin, and no place is lost', async () => {
    await fc.assert(
      fc.asyncProperty(limits, steps, async ({ atOnce, waiting, lends }, all) => {
        const kept = lends || atOnce < 3 ? 0 : 1;
        const driver = driven({ atOnce, waiting, lends, kept });
        const { turns, going, outcomes } = driver;
        const most = Math.max(1, Math.floor(atOnce / 2));
        let entered = 0;
        for (const step of all) {
          const before = new Map(nodes.map((node) => [node, turns.going(node)]));
          if ('enter' in step) {
            driver.enter(step.enter);
            entered += 1;
            await setImmediate();
          } else await driver.end(step.end % Math.max(1, going.length), step.fails);

          expect(turns.going()).toBe(going.length);
          expect(turns.going()).toBeLessThanOrEqual(atOnce);
          const ofNodes = nodes.map((node) => turns.going(node)).reduce((a, b) => a + b);
          expect(ofNodes).toBeLessThanOrEqual(atOnce - kept);
          const waitingOf = nodes.map((node) => turns.waiting(node));
          expect(waitingOf.reduce((a, b) => a + b)).toBeLessThanOrEqual(waiting);
          for (const node of nodes) {
            const doOthersWait = nodes.some((other) => other !== node && turns.waiting(other) > 0);
            if (doOthersWait) expect(turns.waiting(node)).toBeLessThanOrEqual(Math.floor(waiting / 2));
            if (!lends) expect(turns.going(node)).toBeLessThanOrEqual(most);
            if (doOthersWait && turns.going(node) > most) {
              expect(turns.going(node)).toBeLessThanOrEqual(before.get(node) ?? 0);
            }
            if (turns.waiting(node) > 0) {
              const isFull = turns.going() === atOnce || ofNodes === atOnce - kept;
              expect(isFull || turns.going(node) >= most).toBe(true);
            }
          }
        }
        await driver.endAll();
        expect([turns.going(), turns.waiting()]).toEqual([0, 0]);
        expect(outcomes).toHaveLength(entered);
      }),
      { numRuns: 300 },
    );
  });

  it('D2-25: a node that comes to many of another is next, and then every second one is its own', async () => {
    const driver = driven({ atOnce: 1, waiting: 100 });
    for (let i = 0; i < 20; i += 1) driver.enter('a');
    for (let i = 0; i < 3; i += 1) driver.enter('b');
    await driver.endAll();
    expect(driver.begun.slice(0, 7)).toEqual(['a', 'a', 'b', 'a', 'b', 'a', 'b']);
    expect(driver.outcomes.every((outcome) => outcome === 'ended')).toBe(true);
  });

  it('a node that waits is begun before any other is begun twice, however many nodes keep coming', async () => {
    const driver = driven({ atOnce: 1, waiting: 1_000 });
    for (const node of ['x', ...nodes]) for (let i = 0; i < 20; i += 1) driver.enter(node);
    await driver.end();
    driver.enter('late');
    for (let i = 0; i < 6; i += 1) await driver.end();
    expect(driver.begun.slice(2)).toContain('late');
    await driver.endAll();
  });

  it('D2-25: a queue that one node has filled is halved for another, the newest sent away first', async () => {
    const driver = driven({ atOnce: 2, waiting: 8 });
    for (let i = 0; i < 9; i += 1) driver.enter('a');
    driver.enter('a');
    driver.enter('b');
    driver.enter('b');
    await setImmediate();
    expect(driver.turns.waiting('a')).toBe(4);
    expect(driver.turns.waiting('b')).toBe(1);
    expect(driver.outcomes).toEqual(Array.from({ length: 5 }, () => 'sent away'));
    expect(driver.turns.going('b')).toBe(1);
    await driver.endAll();
    expect(driver.outcomes.filter((outcome) => outcome === 'ended')).toHaveLength(7);
  });

  it('a third node gets into a queue that two have filled: whoever waits with the most gives way', async () => {
    const driver = driven({ atOnce: 1, waiting: 8 });
    driver.enter('a');
    for (let i = 0; i < 8; i += 1) for (const node of ['a', 'b']) driver.enter(node);
    for (let i = 0; i < 8; i += 1) driver.enter('c');
    expect(nodes.map((node) => driver.turns.waiting(node)).sort()).toEqual([0, 2, 3, 3]);
    await driver.endAll();
  });

  it('what is of no node has places that nodes cannot take, and is never sent away', async () => {
    const driver = driven({ atOnce: 10, kept: 2, waiting: 20 });
    for (let i = 0; i < 20; i += 1) for (const node of nodes) driver.enter(node);
    expect(driver.turns.going()).toBe(8);
    for (let i = 0; i < 100; i += 1) driver.enter(undefined);
    expect(driver.turns.going('')).toBe(2);
    await driver.endAll();
    expect(driver.begun.filter((node) => node === undefined)).toHaveLength(100);
  });

  it('a lone node has every place where places are lent, and half of them where they are not', async () => {
    for (const [lends, places] of [
      [true, 6],
      [false, 3],
    ] as const) {
      const driver = driven({ atOnce: 6, waiting: 20, lends });
      for (let i = 0; i < 10; i += 1) driver.enter('a');
      expect(driver.turns.going('a')).toBe(places);
      await driver.endAll();
    }
  });

  it('whoever has waited too long is sent away and leaves no place behind', async () => {
    const driver = driven({ atOnce: 1, waiting: 10, waitMs: 20 });
    driver.enter('a');
    driver.enter('a');
    driver.enter('b');
    driver.enter(undefined);
    await expect.poll(() => driver.outcomes).toEqual(['sent away', 'sent away']);
    expect(driver.turns.waiting('')).toBe(1);
    await driver.endAll();
    expect([driver.turns.going(), driver.turns.waiting()]).toEqual([0, 0]);
    driver.enter('a');
    expect(driver.turns.going('a')).toBe(1);
    await driver.endAll();
  });
});

import { setImmediate as turnOfLoop } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { type CountQuestion, RequestCountBatches } from '../../src/cache/request-count-batches.ts';
import { NOTHING_COUNTED } from '../../src/cache/request-counts.rules.ts';

const LIMITS = { perSecond: 5, perMinute: 0, perHour: 0, perMonth: 0 };
const OTHERS = { ...LIMITS, perSecond: 6 };

function stand(fails = false) {
  const asked: CountQuestion[] = [];
  const batches = new RequestCountBatches(async (question) => {
    asked.push(question);
    if (fails) throw new Error('away');
    return Array.from({ length: question.requests }, (_, second) => ({
      ...NOTHING_COUNTED,
      outcome: 'counted' as const,
      second,
    }));
  });
  return { asked, batches };
}

it('D3-15: requests of a client in one turn are one question, each with an answer of its own', async () => {
  const { asked, batches } = stand();
  const first = [1, 2, 3].map((nowMs) => batches.count('a', LIMITS, nowMs));
  const other = batches.count('b', LIMITS, 4);
  expect(asked).toEqual([]);
  expect((await Promise.all(first)).map(({ second }) => second)).toEqual([0, 1, 2]);
  await other;
  expect(asked.map(({ clientId, nowMs, requests }) => [clientId, nowMs, requests])).toEqual([
    ['a', 1, 3],
    ['b', 4, 1],
  ]);
  await batches.count('a', LIMITS, 9);
  expect(asked.at(-1)).toEqual({ clientId: 'a', limits: LIMITS, nowMs: 9, requests: 1 });
});

it('D3-15: limits that have changed are asked for by themselves', async () => {
  const { asked, batches } = stand();
  await Promise.all([LIMITS, OTHERS, OTHERS].map((limits) => batches.count('a', limits, 1)));
  expect(asked.map(({ limits, requests }) => [limits.perSecond, requests])).toEqual([
    [5, 1],
    [6, 2],
  ]);
});

it('D3-15: a question that fails fails for each, and the next turn asks anew', async () => {
  const { asked, batches } = stand(true);
  const failed = [1, 2].map((nowMs) => batches.count('a', LIMITS, nowMs));
  for (const count of failed) await expect(count).rejects.toThrow('away');
  await turnOfLoop();
  await expect(batches.count('a', LIMITS, 3)).rejects.toThrow('away');
  expect(asked.map(({ requests }) => requests)).toEqual([2, 1]);
});

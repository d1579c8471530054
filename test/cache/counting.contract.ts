import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { Cache } from '../../src/platform/cache/cache.ts';
import {
  type CountedRequest,
  countRequest,
  NOTHING_COUNTED,
  type RequestCounts,
  type RequestLimits,
} from '../../src/platform/cache/counts.rules.ts';
import { calls } from '../support/cache/limit-calls.ts';

const NOON = Date.UTC(2026, 10, 21, 12, 0, 0);
const NO_LIMITS: RequestLimits = { perSecond: 0, perMinute: 0, perHour: 0, perMonth: 0 };

/** What every cache promises of the requests and failures that it counts. */
export function countingContract(open: () => Promise<Cache>): void {
  let cache: Cache;
  let client: string;

  beforeAll(async () => {
    cache = await open();
  });
  afterAll(() => cache.stop());
  beforeEach(() => {
    client = randomUUID();
  });

  const count = async (limits: Partial<RequestLimits>, nowMs = NOON, seed?: number) =>
    cache.countRequest(client, { ...NO_LIMITS, ...limits }, nowMs, seed);

  const windows: [name: string, limit: Partial<RequestLimits>, lengthMs: number][] = [
    ['second', { perSecond: 2 }, 1_000],
    ['minute', { perMinute: 2 }, 60_000],
    ['hour', { perHour: 2 }, 3_600_000],
  ];

  it.each(windows)('8-05 D3-15: a limit applies until the %s of the clock ends', async (_name, limit, lengthMs) => {
    const last = NOON + lengthMs - 1;
    expect((await count(limit, last)).outcome).toBe('counted');
    expect((await count(limit, last)).outcome).toBe('counted');
    expect((await count(limit, last)).outcome).toBe('refused');
    expect((await count(limit, NOON + lengthMs)).outcome).toBe('counted');
  });

  it('8-06 D3-15: the quota applies until the calendar month ends in UTC', async () => {
    const quota = { perMonth: 2 };
    const last = Date.UTC(2026, 11, 1) - 1;
    expect(await count(quota, last, 1)).toMatchObject({ outcome: 'counted', month: 2 });
    expect((await count(quota, last)).outcome).toBe('refused');
    expect((await count(quota, last + 1)).outcome).toBe('unknown');
    expect(await count(quota, last + 1, 0)).toMatchObject({ outcome: 'counted', month: 1 });
  });

  it('D3-15: a request rejected by one limit does not count against the others', async () => {
    const limits = { perSecond: 1, perMinute: 5, perHour: 50, perMonth: 500 };
    await count(limits, NOON, 0);
    for (let i = 0; i < 3; i += 1) {
      expect(await count(limits)).toMatchObject({ outcome: 'refused', second: 1, minute: 1, hour: 1, month: 1 });
    }
    expect(await count(limits, NOON + 1_000)).toMatchObject({ outcome: 'counted', second: 1, minute: 2, month: 2 });
  });

  it('D3-15: of 200 concurrent requests with a limit of 50 exactly 50 are counted', async () => {
    for (const limits of [{ perHour: 50 }, { perMonth: 50 }]) {
      const answers = await Promise.all(Array.from({ length: 200 }, () => count(limits, NOON, 0)));
      expect(answers.filter(({ outcome }) => outcome === 'counted')).toHaveLength(50);
    }
  });

  it('D3-08: a client without limits is never rejected', async () => {
    for (let i = 0; i < 100; i += 1) expect((await count(NO_LIMITS)).outcome).toBe('counted');
  });

  it('D3-28: an unknown monthly count counts nothing; then the larger of seed and count is used', async () => {
    const limits = { perSecond: 9, perMonth: 10 };
    expect((await count(limits)).outcome).toBe('unknown');
    expect(await count(limits, NOON, 4)).toMatchObject({ outcome: 'counted', second: 1, month: 5 });
    expect(await count(limits, NOON, 3)).toMatchObject({ second: 2, month: 6 });
    expect(await count(limits, NOON, 8)).toMatchObject({ second: 3, month: 9 });
  });

  it('D3-28: a seed that uses up the quota is stored even if nothing is counted', async () => {
    expect((await count({ perMonth: 5 }, NOON, 5)).outcome).toBe('refused');
    expect(await count({ perMonth: 5 })).toMatchObject({ outcome: 'refused', month: 5 });
  });

  it('D3-15: a clock that is behind counts in the current window', async () => {
    const limits = { perSecond: 2, perMonth: 9 };
    const december = Date.UTC(2026, 11, 1);
    await count(limits, december, 3);
    const behind = await count(limits, december - 1, 7);
    expect(behind).toMatchObject({ outcome: 'counted', second: 2, secondAt: december / 1_000, month: 5 });
    expect((await count(limits, december - 1)).outcome).toBe('refused');
  });

  it('D3-15: the cache counts any sequence of requests as the counting rules do', async () => {
    await fc.assert(
      fc.asyncProperty(calls, async (run) => {
        const id = randomUUID();
        let expected: RequestCounts = NOTHING_COUNTED;
        for (const { limits, nowMs, seed } of run) {
          const wanted = countRequest(expected, limits, nowMs, seed);
          expect(told(await cache.countRequest(id, limits, nowMs, seed), limits)).toEqual(told(wanted, limits));
          if (wanted.outcome === 'counted' || seed !== undefined) expected = wanted;
        }
      }),
      { numRuns: 60 },
    );
  });

  it('D3-15: concurrent requests get the answers that sequential ones would get', async () => {
    await fc.assert(
      fc.asyncProperty(calls, async ([first, ...others]) => {
        if (!first) return;
        const { limits, nowMs } = first;
        const id = randomUUID();
        let expected: RequestCounts = countRequest(NOTHING_COUNTED, limits, nowMs, 0);
        await cache.countRequest(id, limits, nowMs, 0);
        const answers = await Promise.all(
          others.map(async (other) => cache.countRequest(id, limits, other.nowMs, undefined)),
        );
        for (const [index, answer] of answers.entries()) {
          const wanted = countRequest(expected, limits, others[index]?.nowMs ?? nowMs, undefined);
          expect(told(answer, limits)).toEqual(told(wanted, limits));
          if (wanted.outcome === 'counted') expected = wanted;
        }
      }),
      { numRuns: 60 },
    );
  });

  it('D3-18: failures of a key are counted for a minute from the first one on', async () => {
    const fail = async (nowMs: number) => cache.countFailure(client, nowMs);
    expect(await fail(NOON + 500)).toEqual({ count: 1, resetInSeconds: 60 });
    expect(await fail(NOON + 60_499)).toEqual({ count: 2, resetInSeconds: 1 });
    expect(await fail(NOON)).toEqual({ count: 3, resetInSeconds: 60 });
    expect(await cache.countFailure(randomUUID(), NOON)).toMatchObject({ count: 1 });
    expect(await fail(NOON + 60_500)).toEqual({ count: 1, resetInSeconds: 60 });
  });
}

/** What an answer says: an unknown month says nothing else, and a month without a limit says nothing. */
function told({ outcome, monthAt, month, ...rates }: CountedRequest, { perMonth }: RequestLimits): object {
  if (outcome === 'unknown') return { outcome };
  return perMonth > 0 ? { outcome, ...rates, monthAt, month } : { outcome, ...rates };
}

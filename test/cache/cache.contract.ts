import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Cache } from '../../src/platform/cache/cache.ts';
import { countRequest, NOTHING_COUNTED } from '../../src/platform/cache/counts.rules.ts';
import { calls } from '../support/cache/limit-calls.ts';

const NOW = 1_000_000;

/**
 * What every cache promises, whether one process has it or all share it. `empty` makes it lose everything, and returns
 * the cache of the same processes after that.
 */
export function cacheContract(open: () => Promise<Cache>, empty: (cache: Cache) => Promise<Cache>): void {
  let cache: Cache;

  beforeAll(async () => {
    cache = await open();
  });
  afterAll(() => cache.stop());

  it('is healthy', async () => {
    await expect(cache.checkHealth()).resolves.toBeUndefined();
  });

  it('D3-28: an emptied cache counts from zero, and asks for the monthly usage again', async () => {
    const run = fc.tuple(calls, fc.nat({ max: 20 }));
    await fc.assert(
      fc.asyncProperty(run, async ([requests, emptiedAt]) => {
        const client = randomUUID();
        let counts = NOTHING_COUNTED;
        for (const [index, { limits, nowMs, seed }] of requests.entries()) {
          if (index === emptiedAt) {
            cache = await empty(cache);
            counts = NOTHING_COUNTED;
          }
          const expected = countRequest(counts, limits, nowMs, seed);
          const { outcome } = await cache.countRequest(client, limits, nowMs, seed);
          expect(outcome).toBe(expected.outcome);
          if (expected.outcome === 'counted' || seed !== undefined) counts = expected;
        }
      }),
      { numRuns: 30 },
    );
    const key = randomUUID();
    for (let failure = 1; failure <= 3; failure += 1) await cache.countFailure(key, NOW);
    cache = await empty(cache);
    expect(await cache.countFailure(key, NOW)).toMatchObject({ count: 1 });
    await expect(cache.checkHealth()).resolves.toBeUndefined();
  });
}

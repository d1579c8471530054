import { describe, expect, it } from 'vitest';
import { MemoryCache, MemoryFailureCounts, MemoryRequestCounts } from '../../src/platform/cache/cache.ts';
import { cacheContract } from './cache.contract.ts';
import { countingContract } from './counting.contract.ts';

const LIMITS = { perSecond: 1, perMinute: 0, perHour: 0, perMonth: 9 };

describe('the cache of a single process', () => {
  cacheContract(
    async () => new MemoryCache(),
    async () => new MemoryCache(),
  );
  countingContract(async () => new MemoryCache());

  it('answers synchronously', () => {
    const cache = new MemoryCache();
    expect(cache.countRequest('client', LIMITS, 0, 0)).toMatchObject({ outcome: 'counted' });
    expect(cache.countFailure('key', 0)).toMatchObject({ count: 1 });
  });

  it('evicts the oldest clients instead of growing without bound', () => {
    const counts = new MemoryRequestCounts(2);
    for (const client of ['a', 'b', 'c']) counts.count(client, LIMITS, 0, 0);
    expect(counts.count('a', LIMITS, 0, undefined).outcome).toBe('unknown');
    expect(counts.count('b', LIMITS, 0, undefined).outcome).toBe('refused');
    expect(counts.count('c', LIMITS, 0, undefined).outcome).toBe('refused');
  });

  it('D3-18: evicts the oldest failure counts instead of growing without bound', () => {
    const failures = new MemoryFailureCounts(2);
    for (const key of ['a', 'b', 'c']) failures.count(key, 0);
    expect(failures.count('c', 1)).toMatchObject({ count: 2 });
    expect(failures.count('a', 1)).toMatchObject({ count: 1 });
  });
});

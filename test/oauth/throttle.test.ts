import { describe, expect, it } from 'vitest';
import { Throttle } from '../../src/access/limits/client-limits.ts';
import { type Cache, CacheUnavailableError, MemoryCache } from '../../src/platform/cache/cache.ts';
import { RedisCache } from '../../src/platform/cache/redis-cache.ts';
import { freshRedis } from '../support/services/isolation.ts';
import { describeReal } from '../support/services/real.ts';

const NOON = Date.UTC(2026, 10, 21, 12, 0, 0);
const ADDRESS = '198.51.100.7';

function fixture(cache: Pick<Cache, 'countFailure'>) {
  const clock = { nowMs: NOON };
  const throttle = new Throttle({ cache, nowMs: () => clock.nowMs });
  return {
    throttle,
    clock,
    /** The codes of so many failures. */
    async fail(times: number, address = ADDRESS, clientId: string | null = 'client'): Promise<string[]> {
      const codes: string[] = [];
      for (let i = 0; i < times; i += 1) {
        codes.push(
          await throttle.failed(address, clientId ?? undefined).then(
            () => 'refused',
            (error) => error.code,
          ),
        );
      }
      return codes;
    },
  };
}

const away: Pick<Cache, 'countFailure'> = {
  countFailure: () => Promise.reject(new CacheUnavailableError()),
};

describe.each([
  ['in this process', () => new MemoryCache()],
  ['while the cache is unavailable', () => away],
] as const)('wrong client secrets, counted %s', (_name, cache) => {
  it('D3-18: from the twenty-first in a minute on, a wrong secret is a 429 with Retry-After', async () => {
    const { throttle, clock, fail } = fixture(cache());
    expect(await fail(20)).toEqual(Array(20).fill('refused'));
    clock.nowMs += 17_500;
    await expect(throttle.failed(ADDRESS, 'client')).rejects.toMatchObject({
      code: 'rate_limit_exceeded',
      details: { retryAfterSeconds: 43 },
    });
    clock.nowMs = NOON + 60_000;
    expect(await fail(21)).toEqual([...Array(20).fill('refused'), 'rate_limit_exceeded']);
  });

  it('D3-18: wrong secrets are counted separately for each address and client, and for requests without a client', async () => {
    const { fail } = fixture(cache());
    await fail(21);
    expect(await fail(1, '198.51.100.8')).toEqual(['refused']);
    expect(await fail(1, ADDRESS, 'other')).toEqual(['refused']);
    expect(await fail(1, ADDRESS, null)).toEqual(['refused']);
  });
});

describeReal('redis', 'wrong client secrets at several replicas', () => {
  it('D3-18: wrong secrets at two replicas are counted together', async () => {
    await using redis = await freshRedis();
    const caches = [await RedisCache.open({ url: redis.url }), await RedisCache.open({ url: redis.url })];
    const [first, second] = caches.map(fixture);
    expect(await first?.fail(12)).toEqual(Array(12).fill('refused'));
    expect(await second?.fail(10)).toEqual([...Array(8).fill('refused'), 'rate_limit_exceeded', 'rate_limit_exceeded']);
    for (const cache of caches) await cache.stop();
  });
});

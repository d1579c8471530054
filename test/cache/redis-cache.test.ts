import { randomUUID } from 'node:crypto';
import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RedisCache } from '../../src/platform/cache/redis-cache.ts';
import { redisCommand } from '../support/faults/redis-replica.ts';
import { type FreshRedis, freshRedis } from '../support/services/isolation.ts';
import { describeReal } from '../support/services/real.ts';
import { cacheContract } from './cache.contract.ts';
import { countingContract } from './counting.contract.ts';

describeReal('redis', 'the shared cache', () => {
  let redis: FreshRedis;
  beforeAll(async () => {
    redis = await freshRedis();
  });
  afterAll(() => redis.release());

  describe('as every cache', () => {
    cacheContract(
      () => RedisCache.open({ url: redis.url, keyPrefix: 'contract:' }),
      async (cache) => {
        await redisCommand(redis.url, 'FLUSHDB');
        return cache;
      },
    );
    countingContract(() => RedisCache.open({ url: redis.url, keyPrefix: 'contract:' }));
  });

  async function openBoth() {
    const client = await createClient({ url: redis.url }).connect();
    const cache = await RedisCache.open({ url: redis.url });
    const close = async () => {
      await cache.stop();
      await client.close();
    };
    return { client, cache, [Symbol.asyncDispose]: close };
  }

  it('stores the usage of a client under one key, with its id as the hash tag and a time to live', async () => {
    await using both = await openBoth();
    const { client, cache } = both;
    const [rated, limited] = [randomUUID(), randomUUID()];
    await cache.countRequest(rated, { perSecond: 1, perMinute: 0, perHour: 0, perMonth: 0 }, 0, undefined);
    await cache.countRequest(limited, { perSecond: 1, perMinute: 0, perHour: 0, perMonth: 1 }, 0, 0);
    await cache.countFailure('guesser', 0);
    expect(await client.keys(`*${rated}*`)).toEqual([`limits:{${rated}}`]);
    // Longer than the window that lasts longest: an hour, a month, a minute.
    expect(await client.pTTL(`limits:{${rated}}`)).toBeGreaterThan(3_600_000);
    expect(await client.pTTL(`limits:{${limited}}`)).toBeGreaterThan(31 * 86_400_000);
    expect(await client.pTTL('failures:{guesser}')).toBeGreaterThan(0);
  });

  it('D3-28: keeps working after its scripts were flushed', async () => {
    await using both = await openBoth();
    const { client, cache } = both;
    const { count } = await cache.countFailure('guesser', 0);
    await client.scriptFlush();
    expect(await cache.countFailure('guesser', 0)).toMatchObject({ count: count + 1 });
  });
});

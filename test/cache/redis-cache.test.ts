import { randomUUID } from 'node:crypto';
import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CacheUnavailableError } from '../../src/platform/cache/cache.ts';
import { RedisCache } from '../../src/platform/cache/redis-cache.ts';
import { type FreshRedis, freshRedis } from '../support/services/isolation.ts';
import { describeReal } from '../support/services/real.ts';
import { cacheContract } from './cache.contract.ts';
import { countingContract } from './counting.contract.ts';

describeReal('redis', 'the cache that replicas share', () => {
  let redis: FreshRedis;
  beforeAll(async () => {
    redis = await freshRedis();
  });
  afterAll(() => redis.release());

  describe('as every cache', () => {
    cacheContract(() => RedisCache.open({ url: redis.url, keyPrefix: 'contract:' }));
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

  it('keeps sessions in the decided keys: a sorted set scored by expiry, and a marker', async () => {
    await using both = await openBoth();
    const { client, cache } = both;
    const node = randomUUID();
    await cache.rebuildSessions(node, async () => ({ live: [{ subject: 'sub', sessionId: 'a', expiresAtMs: 2_000 }] }));
    await cache.addSession(node, 'sub', 'b', 3_000, 1_000, 10);
    expect(await client.zRangeWithScores(`s:{${node}}:sub`, 0, -1)).toEqual([
      { value: 'a', score: 2_000 },
      { value: 'b', score: 3_000 },
    ]);
    expect(await client.exists(`ready:{${node}}`)).toBe(1);
    expect(await client.pTTL(`s:{${node}}:sub`)).toBeGreaterThan(0);
  });

  it('keeps what a client has used in one key with its id as the hash tag, which ends by itself', async () => {
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

  it('D3-28: emptied, it is unready until rebuilt, and works on without its scripts', async () => {
    await using both = await openBoth();
    const { client, cache } = both;
    const node = randomUUID();
    await cache.rebuildSessions(node, async () => ({ live: [{ subject: 'sub', sessionId: 'a', expiresAtMs: 2_000 }] }));
    await client.flushDb();
    await client.scriptFlush();
    expect(await cache.sessionState(node, 'sub', 'a', 1_000)).toBe('unready');
    await cache.rebuildSessions(node, async () => ({ live: [{ subject: 'sub', sessionId: 'a', expiresAtMs: 2_000 }] }));
    expect(await cache.sessionState(node, 'sub', 'a', 1_000)).toBe('live');
  });

  it('D3-28: a cache that is emptied while it is rebuilt does not become ready', async () => {
    await using both = await openBoth();
    const { client, cache } = both;
    const node = randomUUID();
    const sessions = Array.from({ length: 5_000 }, (_, i) => ({
      subject: `sub-${i}`,
      sessionId: 'a',
      expiresAtMs: 2_000,
    }));
    const rebuilding = expect(cache.rebuildSessions(node, async () => ({ live: sessions }))).rejects.toThrow(
      CacheUnavailableError,
    );
    await expect.poll(() => client.exists(`s:{${node}}:sub-0`), { interval: 1 }).toBe(1);
    await client.flushDb();
    await rebuilding;
    expect(await cache.sessionState(node, 'sub-0', 'a', 1_000)).toBe('unready');
  });

  it('D3-28: nor does one that is emptied while the database is read: it has lost what was revoked since', async () => {
    await using both = await openBoth();
    const { client, cache } = both;
    const node = randomUUID();
    const rebuilding = cache.rebuildSessions(node, async () => {
      await cache.removeSessions(node, 'sub', ['revoked']);
      await client.flushDb();
      return { live: [{ subject: 'sub', sessionId: 'revoked', expiresAtMs: 2_000 }] };
    });
    await expect(rebuilding).rejects.toThrow(CacheUnavailableError);
    expect(await cache.sessionState(node, 'sub', 'revoked', 1_000)).toBe('unready');
  });

  it('D3-28: a rebuild that is late adds nothing to what another one has made ready', async () => {
    await using both = await openBoth();
    const { client, cache } = both;
    const node = randomUUID();
    const late = cache.rebuildSessions(node, async () => {
      await cache.rebuildSessions(node, async () => ({ live: [] }));
      await cache.removeSessions(node, 'sub', ['revoked']);
      // A minute later nobody knows that it was removed.
      await client.del(`removed:{${node}}:sub`);
      return { live: [{ subject: 'sub', sessionId: 'revoked', expiresAtMs: 2_000 }] };
    });
    await expect(late).rejects.toThrow(CacheUnavailableError);
    expect(await cache.sessionState(node, 'sub', 'revoked', 1_000)).toBe('absent');
  });
});

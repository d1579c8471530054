import { rm } from 'node:fs/promises';
import { createClient } from 'redis';
import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { CacheUnavailableError, MemoryCache } from '../../src/platform/cache/cache.ts';
import { RedisCache } from '../../src/platform/cache/redis-cache.ts';
import type { Database } from '../../src/platform/database/open-database.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { scratchDatabase } from '../support/harness/databases.ts';
import {
  type Counter,
  type CounterOptions,
  counter,
  limitedClient,
  savedQuota,
  times,
} from '../support/oauth/limits-fixture.ts';
import { temporaryFolder } from '../support/services/folders.ts';
import { describeReal } from '../support/services/real.ts';
import { type RedisServer, startRedis } from '../support/services/redis.ts';

const AWAY = 'warn: Redis unavailable; counting client requests in this process only';
const BACK = 'info: Redis available again; it counts client requests';

describeReal('redis', 'limits while the cache that replicas share is away', () => {
  const database = beforeTests(scratchDatabase);
  let db: Database['db'];
  let dataDir: string;
  let server: RedisServer;
  const caches: RedisCache[] = [];

  beforeAll(async () => {
    ({ db } = database);
  });
  beforeEach(async () => {
    dataDir = await temporaryFolder();
    server = await startRedis({ dataDir });
  });
  afterEach(async () => {
    for (const cache of caches.splice(0)) await cache.stop();
    await server.stop();
    await rm(dataDir, { recursive: true, force: true });
  });

  async function replica(save?: CounterOptions['save']): Promise<Counter & { cache: RedisCache }> {
    const cache = await RedisCache.open({ url: server.url });
    caches.push(cache);
    return { ...counter(db, save ? { cache, save } : { cache }), cache };
  }

  const stateOf = (cache: RedisCache) =>
    cache.checkHealth().then(
      () => 'reached',
      () => 'away',
    );
  const reaches = ({ cache }: { cache: RedisCache }) =>
    expect.poll(() => stateOf(cache), { interval: 20 }).toBe('reached');
  const loses = ({ cache }: { cache: RedisCache }) => expect.poll(() => stateOf(cache), { interval: 20 }).toBe('away');

  /** Cuts every connection to Redis and lets nobody in; what it holds stays. */
  async function cutOff(): Promise<void> {
    const client = await createClient({ url: server.url }).connect();
    await client.sendCommand(['CONFIG', 'SET', 'requirepass', 'nobody knows']);
    await client.sendCommand(['CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes']);
    await client.close();
  }

  async function startSession(): Promise<void> {
    const client = await createClient({ url: server.url, password: 'nobody knows' }).connect();
    await client.sendCommand(['CONFIG', 'SET', 'requirepass', '']);
    await client.close();
  }

  it('8-05 8-06: without Redis each process counts locally, logs one warning, counts in a metric, and fails no request', async () => {
    const client = await limitedClient(db, { perMinute: 3, perMonth: 100 });
    const [first, second] = [await replica(), await replica()];
    await times(2, () => first.count(client));
    await server.stop();
    await Promise.all([loses(first), loses(second)]);
    expect(await times(4, () => first.count(client))).toEqual(['passed', 'passed', 'passed', 'rate_limit_exceeded']);
    expect(await times(4, () => second.count(client))).toEqual(['passed', 'passed', 'passed', 'rate_limit_exceeded']);
    expect(first.logged).toEqual([AWAY]);
    expect(second.logged).toEqual([AWAY]);
    expect(await first.countedAlone()).toBe(4);
  });

  it('8-05: while the cache is unavailable for some clients only, their requests are counted locally, with one warning', async () => {
    const [lost, kept] = [await limitedClient(db, { perMinute: 3 }), await limitedClient(db, { perMinute: 3 })];
    const cache = new MemoryCache();
    const whole = cache.countRequest.bind(cache);
    let isAway = true;
    cache.countRequest = (clientId, ...more) => {
      if (isAway && clientId === lost.clientId) throw new CacheUnavailableError();
      return whole(clientId, ...more);
    };
    const process = counter(db, { cache });
    const both = async () => [await process.count(lost), await process.count(kept)];
    expect(await times(3, async () => (await both()).join())).toEqual(Array(3).fill('passed,passed'));
    expect(await both()).toEqual(['rate_limit_exceeded', 'rate_limit_exceeded']);
    expect(process.logged).toEqual([AWAY]);
    isAway = false;
    expect(await both()).toEqual(['passed', 'rate_limit_exceeded']);
    expect(process.logged).toEqual([AWAY, BACK]);
  });

  it('D3-28 8-06: the quota continues from the last known count, and is restored in a Redis that lost its data', async () => {
    const client = await limitedClient(db, { perMonth: 20 });
    const [first, second] = [await replica(), await replica()];
    await times(4, () => first.count(client));
    await times(2, () => second.count(client));
    await second.limits.save();
    await server.stop();
    await Promise.all([loses(first), loses(second)]);
    await times(3, () => first.count(client));
    await times(5, () => second.count(client));
    await second.limits.save();
    await first.limits.save();
    expect(await savedQuota(db, client)).toBe(14);
    server = await startRedis({ dataDir, port: server.port });
    await Promise.all([reaches(first), reaches(second)]);
    expect((await first.headers(client))['X-MonthlyLimit-Remaining']).toBe('5');
    expect((await second.headers(client))['X-MonthlyLimit-Remaining']).toBe('4');
    expect(await times(5, () => first.count(client))).toEqual([...Array(4).fill('passed'), 'monthly_limit_exceeded']);
    expect(first.logged).toEqual([AWAY, BACK]);
  });

  it('D3-28 8-06: the quota continues from the last known count after a failover to a lagging replica', async () => {
    const { headers } = await replica();
    const client = await limitedClient(db, { perMonth: 1_000, perHour: 1_000 });
    const remaining = async () => (await headers(client))['X-MonthlyLimit-Remaining'];
    const redis = await createClient({ url: server.url }).connect();
    for (const left of ['999', '998']) expect(await remaining()).toBe(left);
    const [key = ''] = await redis.keys(`*limits:{${client.clientId}}`);
    await redis.copy(key, 'older');
    for (const left of ['997', '996', '995']) expect(await remaining()).toBe(left);
    await redis.copy('older', key, { REPLACE: true });
    expect(await remaining()).toBe('994');
    expect(await Promise.all(Array.from({ length: 3 }, remaining))).toEqual(['993', '992', '991']);
    redis.destroy();
  });

  it('D3-28 8-06: a Redis that returns with its data is raised by the requests counted locally in the meantime', async () => {
    const client = await limitedClient(db, { perMonth: 100 });
    const [first, second] = [await replica(), await replica()];
    await times(4, () => first.count(client));
    await times(2, () => second.count(client));
    await second.limits.save();
    await cutOff();
    await Promise.all([loses(first), loses(second)]);
    await times(3, () => first.count(client));
    await times(5, () => second.count(client));
    // As each process does every two seconds.
    await first.limits.save();
    await second.limits.save();
    await startSession();
    await Promise.all([reaches(first), reaches(second)]);
    expect((await second.headers(client))['X-MonthlyLimit-Remaining']).toBe('85');
    expect((await first.headers(client))['X-MonthlyLimit-Remaining']).toBe('84');
    await Promise.all([first.limits.save(), second.limits.save()]);
    expect(await savedQuota(db, client)).toBe(16);
  });

  it('D3-28: requests that one process counted locally reach Redis even if that process is idle afterwards', async () => {
    const client = await limitedClient(db, { perMonth: 100 });
    const [first, second] = [await replica(), await replica()];
    await first.count(client);
    await second.count(client);
    await cutOff();
    await Promise.all([loses(first), loses(second)]);
    await times(5, () => second.count(client));
    await startSession();
    await Promise.all([reaches(first), reaches(second)]);
    await second.limits.save();
    // The idle one does not know; what the other saves reads what was saved.
    await first.count(client);
    await first.limits.save();
    expect((await first.headers(client))['X-MonthlyLimit-Remaining']).toBe('92');
  });

  it('D3-28: while the database is slow too, a process continues from the count it knows', async () => {
    const client = await limitedClient(db, { perMonth: 6 });
    const { promise: mended, resolve: mend } = Promise.withResolvers<void>();
    let isSlow = false;
    const first = await replica((save) => async (quotas, lastUses) => {
      if (isSlow) await mended;
      return save(quotas, lastUses);
    });
    await times(2, () => first.count(client));
    await cutOff();
    await loses(first);
    isSlow = true;
    await times(2, () => first.count(client));
    await startSession();
    await reaches(first);
    expect(await times(3, () => first.count(client))).toEqual(['passed', 'passed', 'monthly_limit_exceeded']);
    mend();
    await first.limits.save();
    expect(await savedQuota(db, client)).toBe(6);
  });
});

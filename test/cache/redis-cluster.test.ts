import { randomUUID } from 'node:crypto';
import { describe, expect, it, vi } from 'vitest';
import { CacheUnavailableError } from '../../src/platform/cache/cache.ts';
import { RedisCache, type RedisCacheOptions } from '../../src/platform/cache/redis-cache.ts';
import { ConfigError } from '../../src/platform/config/config.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { describeReal } from '../support/services/real.ts';
import { type ClusterMember, moveSlot, startRedisCluster } from '../support/services/redis-cluster.ts';
import { cacheContract } from './cache.contract.ts';
import { countingContract } from './counting.contract.ts';

const LIMITS = { perSecond: 0, perMinute: 0, perHour: 50, perMonth: 0 };

describeReal('redis', 'the shared cache on a Redis Cluster', () => {
  const cluster = beforeTests(startRedisCluster);

  const urlOf = (index: number) => cluster.masters[index]?.url ?? '';
  const openAt = (index: number) => openWhole({ url: urlOf(index), keyPrefix: 'contract:' });

  /** Moves the slot of a node's keys to another master; `work` is done when half of them, by name, have gone. */
  async function halfMoved(node: string, work: () => Promise<unknown>): Promise<void> {
    const from = await cluster.masterOf(`{${node}}`);
    const to = cluster.masters.find((master) => master !== from) ?? from;
    await moveSlot(await cluster.slotOf(`{${node}}`), from, to, async () => void (await work()));
  }

  describe('as every cache', () => {
    cacheContract(
      () => openAt(0),
      async (cache) => {
        await Promise.all(cluster.masters.map(({ command }) => command('FLUSHALL')));
        return cache;
      },
    );
    countingContract(() => openAt(1));
  });

  it('finds every key at its master, whichever server the URL names', async () => {
    const [one, other] = await Promise.all([openAt(0), openAt(2)]);
    const nodes = Array.from({ length: 60 }, () => randomUUID());
    const at = new Set<ClusterMember>();
    for (const node of nodes) {
      await one.countFailure(node, 0);
      expect(await other.countFailure(node, 0)).toMatchObject({ count: 2 });
      at.add(await cluster.masterOf(`{${node}}`));
    }
    expect(at.size).toBe(3);
    await Promise.all([one.stop(), other.stop()]);
  });

  it('keeps counts while their slots move and afterwards', async () => {
    const cache = await openWhole({ url: urlOf(0) });
    const node = randomUUID();
    const count = () => cache.countRequest(node, LIMITS, 0, undefined);
    const outcomes = [await count()];
    // A failure of the same key is in the slot too.
    await cache.countFailure(node, 0);
    await halfMoved(node, async () => {
      for (let i = 0; i < 9; i += 1) outcomes.push(await count());
      expect(await cache.countFailure(node, 0)).toMatchObject({ count: 2 });
    });
    for (let i = 0; i < 45; i += 1) outcomes.push(await count());
    expect(outcomes.filter(({ outcome }) => outcome === 'counted')).toHaveLength(50);
    expect(await cache.countFailure(node, 0)).toMatchObject({ count: 3 });
    await cache.stop();
  });

  it('rejects a database number at the start and says what to change', async () => {
    const opening = RedisCache.open({ url: `${urlOf(0)}/3` });
    await expect(opening).rejects.toThrow(ConfigError);
    await expect(opening).rejects.toThrow('REDIS_URL: a Redis Cluster has only database 0; remove /3 at the end');
  });

  it('is unhealthy while slots have no master', async () => {
    const cache = await openWhole({ url: urlOf(0) });
    const key = randomUUID();
    const slot = `${await cluster.slotOf(key)}`;
    const owner = await cluster.masterOf(key);
    for (const { command } of cluster.masters) await command('CLUSTER', 'DELSLOTS', slot);
    const count = () => cache.countRequest(key, LIMITS, 0, undefined);
    await expect(count()).rejects.toThrow(CacheUnavailableError);
    await expect.poll(() => cache.checkHealth().then(String, String)).toContain('CacheUnavailable');
    // What these know of the cluster lacks the slot.
    const opened = await Promise.all(Array.from({ length: 12 }, () => RedisCache.open({ url: urlOf(0) })));
    await owner.command('CLUSTER', 'ADDSLOTS', slot);
    for (const one of [cache, ...opened]) {
      await expect.poll(() => one.checkHealth().then(String, String)).toBe('undefined');
      // What is under way while a connection is replaced is rejected, and counted in the process.
      const outcome = async () => (await one.countRequest(key, LIMITS, 0, undefined)).outcome;
      await expect.poll(() => outcome().catch(String)).toBe('counted');
      await one.stop();
    }
  });
});

/** Open, with a connection to each master: on a busy machine the first attempt may have come to nothing. */
async function openWhole(options: RedisCacheOptions): Promise<RedisCache> {
  const cache = await RedisCache.open(options);
  await vi.waitFor(() => cache.checkHealth());
  return cache;
}

import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { CacheUnavailableError } from '../../src/platform/cache/cache.ts';
import { RedisCache, type RedisCacheOptions } from '../../src/platform/cache/redis-cache.ts';
import { slotOf } from '../../src/platform/cache/redis-topology.rules.ts';
import { ConfigError } from '../../src/platform/config/config.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { describeReal } from '../support/services/real.ts';
import { type ClusterMember, moveSlot, startRedisCluster } from '../support/services/redis-cluster.ts';
import { cacheContract } from './cache.contract.ts';
import { countingContract } from './counting.contract.ts';

const LIMITS = { perSecond: 0, perMinute: 0, perHour: 50, perMonth: 0 };
const LATER = 60_000;

describeReal('redis', 'the cache that replicas share on a Redis Cluster', () => {
  const cluster = beforeTests(startRedisCluster);

  const urlOf = (index: number) => cluster.masters[index]?.url ?? '';
  const openAt = (index: number) => openWhole({ url: urlOf(index), keyPrefix: 'contract:' });

  /** Moves the slot of a node's keys to another master; `work` is done when half of them, by name, have gone. */
  async function halfMoved(
    node: string,
    work: (from: ClusterMember, to: ClusterMember) => Promise<unknown>,
  ): Promise<void> {
    const from = await cluster.masterOf(`{${node}}`);
    const to = cluster.masters.find((master) => master !== from) ?? from;
    await moveSlot(await cluster.slotOf(`{${node}}`), from, to, async () => void (await work(from, to)));
  }

  describe('as every cache', () => {
    cacheContract(() => openAt(0));
    countingContract(() => openAt(1));
  });

  it('finds every key at the master that has it, by whichever it was told of', async () => {
    const [one, other] = await Promise.all([openAt(0), openAt(2)]);
    const nodes = Array.from({ length: 60 }, () => randomUUID());
    const at = new Set<ClusterMember>();
    for (const node of nodes) {
      await one.rebuildSessions(node, async () => ({ live: [{ subject: 'sub', sessionId: 'a', expiresAtMs: LATER }] }));
      expect(await other.sessionState(node, 'sub', 'a', 0)).toBe('live');
      at.add(await cluster.masterOf(`{${node}}`));
    }
    expect(at.size).toBe(3);
    await Promise.all([one.stop(), other.stop()]);
  });

  it('knows the slot of any key as the servers do', async () => {
    const text = fc.string({ unit: fc.constantFrom('a', '0', ':', '{', '}', 'é', '€', '😀') });
    const keys = fc.sample(fc.oneof(text, fc.uuid()), 200);
    for (const key of ['', '{}', 'a{}b{c}', 'a{b', '}a{b}', ...keys]) {
      expect([key, slotOf(key)]).toEqual([key, await cluster.slotOf(key)]);
    }
  });

  it('keeps sessions and counts while their slots move, and after', async () => {
    const cache = await openWhole({ url: urlOf(0) });
    const node = randomUUID();
    const session = { subject: 'sub', sessionId: 'a', expiresAtMs: LATER };
    await cache.rebuildSessions(node, async () => ({ live: [session] }));
    for (const id of ['b', 'c']) await cache.addSession(node, id, id, LATER, 0, 9);
    await cache.removeSessions(node, 'sub', ['gone']);
    // A client's count in the same slot.
    const count = () => cache.countRequest(node, LIMITS, 0, undefined);
    const outcomes = [await count()];
    let meanwhile: Promise<unknown> | undefined;
    await halfMoved(node, async (from, to) => {
      for (let i = 0; i < 9; i += 1) outcomes.push(await count());
      // Its keys are half here and half there: nobody can tell now.
      const before = await refusals(from, to);
      meanwhile = cache.sessionState(node, 'sub', 'a', 0);
      meanwhile.catch(() => undefined);
      await expect.poll(() => refusals(from, to), { interval: 1 }).toBeGreaterThan(before);
    });
    // Made ready by another master: what that has is trusted when it has been rebuilt.
    expect(['live', 'unready']).toContain(await meanwhile);
    for (let i = 0; i < 45; i += 1) outcomes.push(await count());
    expect(outcomes.filter(({ outcome }) => outcome === 'counted')).toHaveLength(50);
    expect(await cache.sessionState(node, 'sub', 'a', 0)).toBe('unready');
    await cache.rebuildSessions(node, async () => ({ live: [session], ended: [{ subject: 'b', sessionId: 'b' }] }));
    const states = await Promise.all(
      [
        ['sub', 'a'],
        ['b', 'b'],
        ['c', 'c'],
      ].map(([subject = '', id = '']) => cache.sessionState(node, subject, id, 0)),
    );
    expect(states).toEqual(['live', 'absent', 'live']);
    await cache.stop();
  });

  it('D3-28: while a slot moves, keys that are together are answered for', async () => {
    const cache = await openWhole({ url: urlOf(0) });
    const states: unknown[] = [];
    // By name, what has gone halfway: a session with its node's marker, or neither of them.
    for (const subjects of [['a', 'b', 'c', 'd'], ['a']]) {
      const node = randomUUID();
      const live = subjects.map((subject) => ({ subject, sessionId: 'a', expiresAtMs: LATER }));
      await cache.rebuildSessions(node, async () => ({ live }));
      if (subjects.length === 1) {
        await cache.countRequest(node, LIMITS, 0, undefined);
        await cache.countFailure(node, 0);
      }
      await halfMoved(node, async () => states.push(await cache.sessionState(node, 'a', 'a', 0)));
    }
    // At its new master the node is ready, or is to be rebuilt, by which of the two has been master for longer.
    expect(states).toEqual([expect.stringMatching(/^(live|unready)$/), 'live']);
    await cache.stop();
  });

  it('D3-28: what a slot on its way keeps apart is asked for again and again, for a while', async () => {
    const cache = await openWhole({ url: urlOf(0) });
    const node = randomUUID();
    await cache.rebuildSessions(node, async () => ({ live: [{ subject: 'a', sessionId: 'a', expiresAtMs: LATER }] }));
    await halfMoved(node, async (from, to) => {
      const before = await refusals(from, to);
      await expect(cache.sessionState(node, 'a', 'a', 0)).rejects.toThrow(
        expect.objectContaining({
          name: 'CacheUnavailableError',
          cause: expect.objectContaining({ message: expect.stringMatching(/^(TRYAGAIN|ASK) /) }),
        }),
      );
      const asked = (await refusals(from, to)) - before;
      expect(asked).toBeGreaterThan(1);
      expect(asked).toBeLessThan(30);
    });
    await expect.poll(() => cache.sessionState(node, 'a', 'a', 0)).toBe('unready');
    await cache.stop();
  });

  it('is refused a start with the number of a database, told what to change', async () => {
    const opening = RedisCache.open({ url: `${urlOf(0)}/3` });
    await expect(opening).rejects.toThrow(ConfigError);
    await expect(opening).rejects.toThrow('REDIS_URL: a Redis Cluster has only database 0; remove /3 at the end');
  });

  it('is not healthy while slots have no master', async () => {
    const cache = await openWhole({ url: urlOf(0) });
    const key = randomUUID();
    const slot = `${await cluster.slotOf(key)}`;
    const owner = await cluster.masterOf(key);
    for (const { command } of cluster.masters) await command('CLUSTER', 'DELSLOTS', slot);
    const count = () => cache.countRequest(key, LIMITS, 0, undefined);
    await expect(count()).rejects.toThrow(CacheUnavailableError);
    await expect.poll(() => cache.checkHealth().then(String, String)).toContain('CacheUnavailable');
    await owner.command('CLUSTER', 'ADDSLOTS', slot);
    await expect.poll(() => cache.checkHealth().then(String, String)).toBe('undefined');
    expect((await count()).outcome).toBe('counted');
    await cache.stop();
  });
});

/** How often one of them has said that a slot's keys are not all here. Before Redis 7 the one says so that they go to, since then either. */
async function refusals(...members: ClusterMember[]): Promise<number> {
  const infos = await Promise.all(members.map(({ command }) => command('INFO', 'errorstats')));
  return infos.reduce((sum: number, info) => sum + Number(/TRYAGAIN:count=(\d+)/.exec(String(info))?.[1] ?? 0), 0);
}

/** Open, with a connection to each master: on a busy machine the first attempt may have come to nothing. */
async function openWhole(options: RedisCacheOptions): Promise<RedisCache> {
  const cache = await RedisCache.open(options);
  await vi.waitFor(() => cache.checkHealth());
  return cache;
}

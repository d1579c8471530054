import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { CacheUnavailableError } from '../../src/platform/cache/cache.ts';
import { RedisCache } from '../../src/platform/cache/redis-cache.ts';
import { freeze } from '../support/services/freeze.ts';
import { describeReal } from '../support/services/real.ts';
import { type ClusterMember, type RedisCluster, startRedisCluster } from '../support/services/redis-cluster.ts';

const LATER = 60_000;
const LIMITS = { perSecond: 0, perMinute: 0, perHour: 0, perMonth: 9 };

describeReal('redis', 'faults of a Redis Cluster', () => {
  let cluster: RedisCluster;
  let cache: RedisCache;
  const onOutage = vi.fn<(error: unknown) => void>();

  async function start(options: { hasReplica?: boolean } = {}): Promise<[ClusterMember, ClusterMember, ClusterMember]> {
    cluster = await startRedisCluster(options);
    const [first, second, third] = cluster.masters;
    if (!first || !second || !third) throw new Error('three masters');
    return [first, second, third];
  }

  beforeEach(() => onOutage.mockClear());
  afterEach(async () => {
    await cache.stop();
    await cluster[Symbol.asyncDispose]();
  });

  /** With a connection to each master: on a busy machine the first attempt may have come to nothing. */
  async function openAt({ url }: ClusterMember): Promise<void> {
    for (;;) {
      onOutage.mockClear();
      cache = await RedisCache.open({ url, onOutage });
      await vi.waitFor(() => cache.checkHealth());
      // On a busy machine an opening may begin with an outage, which goes on until the server has answered a PING.
      if (onOutage.mock.calls.length === 0) return;
      await cache.stop();
    }
  }

  /** The id of a node whose keys that master has. */
  async function nodeAt(master: ClusterMember): Promise<string> {
    for (;;) {
      const node = randomUUID();
      if ((await cluster.masterOf(`{${node}}`)) === master) return node;
    }
  }

  const stateOf = (node: string) => cache.sessionState(node, 'sub', 'a', 0);
  const answerOf = (node: string) => stateOf(node).catch((error) => error);
  const login = (node: string) =>
    cache.rebuildSessions(node, async () => ({ live: [{ subject: 'sub', sessionId: 'a', expiresAtMs: LATER }] }));

  it('D3-28: a server that comes later is found to be of a cluster then', async () => {
    const [first, second] = await start();
    const [here, there] = await Promise.all([nodeAt(first), nodeAt(second)]);
    await first.kill();
    cache = await RedisCache.open({ url: first.url, onOutage });
    await expect(stateOf(there)).rejects.toThrow(CacheUnavailableError);
    await expect(cache.checkHealth()).rejects.toThrow(CacheUnavailableError);
    await first.start();
    await expect.poll(() => answerOf(there)).toBe('unready');
    await expect.poll(() => answerOf(here)).toBe('unready');
    await expect.poll(() => cache.checkHealth().then(() => 'ok', String)).toBe('ok');
    expect(onOutage).toHaveBeenCalledTimes(1);
  });

  it('D3-28: while one master is dead its slots are refused, the others go on; it comes back unready', async () => {
    const [first, second] = await start();
    // The server that the URL names, and one that it does not.
    for (const dead of [first, second]) {
      await openAt(first);
      const [lost, kept] = await Promise.all([nodeAt(dead), nodeAt(dead === first ? second : first)]);
      await Promise.all([login(lost), login(kept)]);
      const { generation } = cache;
      await dead.kill();
      await expect.poll(() => answerOf(lost)).toBeInstanceOf(CacheUnavailableError);
      for (let i = 0; i < 20; i += 1) expect(await stateOf(kept)).toBe('live');
      await expect(cache.checkHealth()).rejects.toThrow(CacheUnavailableError);
      await dead.start();
      await expect.poll(() => answerOf(lost)).toBe('unready');
      await expect.poll(() => cache.checkHealth().then(() => 'ok', String)).toBe('ok');
      expect(await stateOf(kept)).toBe('live');
      expect(cache.generation).not.toBe(generation);
      expect(onOutage).toHaveBeenCalledTimes(1);
      onOutage.mockClear();
      await cache.stop();
    }
  });

  it('D3-28: a process starts while a master is dead, and finds it when it is back', async () => {
    const [first, second] = await start();
    const [lost, kept] = await Promise.all([nodeAt(second), nodeAt(first)]);
    await second.kill();
    cache = await RedisCache.open({ url: first.url, onOutage });
    await expect.poll(() => answerOf(kept)).toBe('unready');
    await expect(stateOf(lost)).rejects.toThrow(CacheUnavailableError);
    expect(onOutage).toHaveBeenCalledTimes(1);
    await second.start();
    await expect.poll(() => answerOf(lost)).toBe('unready');
  });

  it('D3-28: a frozen master is given up soon, the others go on, and it is taken back when it goes on', async () => {
    const [first, second] = await start();
    await openAt(first);
    const [lost, kept] = await Promise.all([nodeAt(second), nodeAt(first)]);
    await Promise.all([login(lost), login(kept)]);
    await freeze(second.pid);
    await expect(stateOf(lost)).rejects.toThrow(CacheUnavailableError);
    await expect(stateOf(lost)).rejects.toThrow(CacheUnavailableError);
    expect(await stateOf(kept)).toBe('live');
    process.kill(second.pid, 'SIGCONT');
    await expect.poll(() => answerOf(lost)).toBe('live');
    expect(onOutage).toHaveBeenCalledTimes(1);
  });

  it('D8-01 D3-36: while one master refuses writes the cluster is not well, and only its slots are known to refuse', async () => {
    const [first, second] = await start();
    await openAt(first);
    const [here, there] = await Promise.all([nodeAt(first), nodeAt(second)]);
    await second.command('CONFIG', 'SET', 'min-replicas-to-write', '1');
    await expect(cache.checkHealth()).rejects.toThrow(CacheUnavailableError);
    expect([cache.isRefusing, cache.refusesSessions(here), cache.refusesSessions(there)]).toEqual([true, false, true]);
    await second.command('CONFIG', 'SET', 'min-replicas-to-write', '0');
    await cache.checkHealth();
    expect([cache.isRefusing, cache.refusesSessions(there)]).toEqual([false, false]);
  });

  it('D3-28: a replica that takes over is believed nothing of sessions and quotas until it was told them', async () => {
    const [first, second] = await start({ hasReplica: true });
    const { replica } = cluster;
    if (!replica) throw new Error('a replica');
    await openAt(second);
    const node = await nodeAt(first);
    await login(node);
    await cache.addSession(node, 'sub', 'revoked', LATER, 0, 9);
    await cache.countRequest(node, LIMITS, 0, 0);
    const { generation } = cache;
    // It misses what comes now.
    await expect.poll(() => replica.command('DBSIZE')).toBe(await first.command('DBSIZE'));
    await freeze(replica.pid);
    await first.command('CLIENT', 'KILL', 'TYPE', 'replica');
    await cache.removeSessions(node, 'sub', ['revoked']);
    await first.kill();
    process.kill(replica.pid, 'SIGCONT');
    await replica.takeOver();
    await expect.poll(() => answerOf(node)).toBe('unready');
    expect(await cache.sessionState(node, 'sub', 'revoked', 0)).toBe('unready');
    expect(await replica.command('ZSCORE', `s:{${node}}:sub`, 'revoked')).not.toBeNull();
    expect(cache.generation).not.toBe(generation);
    const session = { subject: 'sub', sessionId: 'a', expiresAtMs: LATER };
    await cache.rebuildSessions(node, async () => ({
      live: [session],
      ended: [{ subject: 'sub', sessionId: 'revoked' }],
    }));
    expect(await stateOf(node)).toBe('live');
    expect(await cache.sessionState(node, 'sub', 'revoked', 0)).toBe('absent');
    await expect.poll(() => cache.checkHealth().then(() => 'ok', String)).toBe('ok');
    expect(onOutage).toHaveBeenCalledTimes(1);
    // As a replica of the other one it is nobody's master.
    await first.start();
    expect(await stateOf(node)).toBe('live');
  });

  it('a rebuild that another server takes over from is not whole', async () => {
    const [first] = await start({ hasReplica: true });
    const { replica } = cluster;
    await openAt(first);
    const node = await nodeAt(first);
    const many = Array.from({ length: 3_000 }, (_, i) => ({ subject: `sub-${i}`, sessionId: 'a', expiresAtMs: LATER }));
    const rebuilding = expect(cache.rebuildSessions(node, async () => ({ live: many }))).rejects.toThrow(
      CacheUnavailableError,
    );
    await expect.poll(() => first.command('EXISTS', `s:{${node}}:sub-0`), { interval: 1 }).toBe(1);
    await replica?.takeOver();
    await rebuilding;
    await expect.poll(() => answerOf(node)).toBe('unready');
  });
});

import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeEach, expect, inject, it, vi } from 'vitest';
import { CacheUnavailableError } from '../../src/platform/cache/cache.ts';
import { RedisCache } from '../../src/platform/cache/redis-cache.ts';
import { freeze } from '../support/services/freeze.ts';
import { describeReal } from '../support/services/real.ts';
import { type ClusterMember, type RedisCluster, startRedisCluster } from '../support/services/redis-cluster.ts';

const LIMITS = { perSecond: 0, perMinute: 0, perHour: 0, perMonth: 9 };

describeReal('redis', 'faults of a Redis Cluster', () => {
  let cluster: RedisCluster;
  /** The one without replicas, which is whole again after each test. */
  let kept: RedisCluster | undefined;
  let cache: RedisCache;
  const onOutage = vi.fn<(error: unknown) => void>();

  async function start(options: { replicas?: number } = {}): Promise<[ClusterMember, ClusterMember, ClusterMember]> {
    if (options.replicas) cluster = await startRedisCluster(options);
    else cluster = kept ??= await startRedisCluster();
    const [first, second, third] = cluster.masters;
    if (!first || !second || !third) throw new Error('three masters');
    return [first, second, third];
  }

  beforeEach(() => onOutage.mockClear());
  afterEach(async () => {
    await cache.stop();
    if (cluster !== kept) await cluster[Symbol.asyncDispose]();
  });
  afterAll(() => kept?.[Symbol.asyncDispose]());

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

  const countOf = async (node: string) => (await cache.countFailure(node, 0)).count;
  const answerOf = (node: string) => countOf(node).catch((error) => error);
  const counts = (node: string) => expect.poll(() => answerOf(node)).toBeTypeOf('number');

  it('D3-28: a server that is unreachable at the start is recognized as a cluster member when it answers', async () => {
    const [first, second] = await start();
    const [here, there] = await Promise.all([nodeAt(first), nodeAt(second)]);
    await first.kill();
    cache = await RedisCache.open({ url: first.url, onOutage });
    await expect(countOf(there)).rejects.toThrow(CacheUnavailableError);
    await expect(cache.checkHealth()).rejects.toThrow(CacheUnavailableError);
    await first.start();
    await counts(there);
    await counts(here);
    await expect.poll(() => cache.checkHealth().then(() => 'ok', String)).toBe('ok');
    expect(onOutage).toHaveBeenCalledTimes(1);
  });

  it('D3-28: while one master is down its slots are unavailable and the others work; it returns empty', async () => {
    const [first, second] = await start();
    // The server that the URL names, and one that it does not.
    for (const dead of inject('isThorough') ? [first, second] : [second]) {
      await openAt(first);
      const [lost, kept] = await Promise.all([nodeAt(dead), nodeAt(dead === first ? second : first)]);
      await Promise.all([countOf(lost), countOf(kept)]);
      await dead.kill();
      await expect.poll(() => answerOf(lost)).toBeInstanceOf(CacheUnavailableError);
      for (let i = 0; i < 20; i += 1) expect(await countOf(kept)).toBe(i + 2);
      await expect(cache.checkHealth()).rejects.toThrow(CacheUnavailableError);
      await dead.start();
      await counts(lost);
      await expect.poll(() => cache.checkHealth().then(() => 'ok', String)).toBe('ok');
      expect(await countOf(kept)).toBe(22);
      expect(onOutage).toHaveBeenCalledTimes(1);
      onOutage.mockClear();
      await cache.stop();
    }
  });

  it('D3-28: a process that starts while a master is down gets errors until its replica has taken over', async () => {
    const [first, second] = await start({ replicas: 1 });
    const [lost, other] = await Promise.all([nodeAt(first), nodeAt(second)]);
    await first.kill();
    cache = await RedisCache.open({ url: second.url, onOutage });
    await expect(countOf(lost)).rejects.toThrow(CacheUnavailableError);
    await expect(countOf(other)).rejects.toThrow(CacheUnavailableError);
    await cluster.replicas[0]?.takeOver();
    await counts(lost);
    await counts(other);
    expect(onOutage).toHaveBeenCalledTimes(1);
  });

  it('D3-28: a frozen master is soon abandoned while the others work, and is used again when it responds', async () => {
    const [first, second] = await start();
    await openAt(first);
    const [lost, kept] = await Promise.all([nodeAt(second), nodeAt(first)]);
    await Promise.all([countOf(lost), countOf(kept)]);
    await freeze(second.pid);
    await expect(countOf(lost)).rejects.toThrow(CacheUnavailableError);
    await expect(countOf(lost)).rejects.toThrow(CacheUnavailableError);
    expect(await countOf(kept)).toBe(2);
    process.kill(second.pid, 'SIGCONT');
    await counts(lost);
    expect(onOutage).toHaveBeenCalledTimes(1);
  });

  it('D8-01 D3-28: while one master rejects writes the cluster is unhealthy, and the others count', async () => {
    const [first, second] = await start();
    await openAt(first);
    const [here, there] = await Promise.all([nodeAt(first), nodeAt(second)]);
    await second.command('CONFIG', 'SET', 'min-replicas-to-write', '1');
    await expect(cache.checkHealth()).rejects.toThrow(CacheUnavailableError);
    expect(await countOf(here)).toBe(1);
    await expect(countOf(there)).rejects.toThrow(CacheUnavailableError);
    await second.command('CONFIG', 'SET', 'min-replicas-to-write', '0');
    await cache.checkHealth();
    expect(await countOf(there)).toBe(1);
  });

  it('D3-28: a replica that takes over continues with the counts that it received', async () => {
    const [first, second] = await start({ replicas: 1 });
    const [replica] = cluster.replicas;
    if (!replica) throw new Error('a replica');
    await openAt(second);
    const node = await nodeAt(first);
    const used = async () => (await cache.countRequest(node, LIMITS, 0, undefined)).month;
    await cache.countRequest(node, LIMITS, 0, 0);
    // It misses what comes now.
    await expect.poll(() => replica.command('DBSIZE')).toBe(await first.command('DBSIZE'));
    await freeze(replica.pid);
    await first.command('CLIENT', 'KILL', 'TYPE', 'replica');
    expect(await used()).toBe(2);
    await first.kill();
    process.kill(replica.pid, 'SIGCONT');
    await replica.takeOver();
    await expect.poll(() => used().catch(() => 'away')).toBe(2);
    await expect.poll(() => cache.checkHealth().then(() => 'ok', String)).toBe('ok');
    expect(onOutage).toHaveBeenCalledTimes(1);
    // As a replica of the other one it is nobody's master.
    await first.start();
    expect(await used()).toBe(3);
  });
});

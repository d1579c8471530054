import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Overrides } from '../../src/app/context.ts';
import { RedisWakeUps } from '../../src/events/streams/redis-wake-ups.ts';
import type { WakeUps } from '../../src/events/streams/wake-ups.ts';
import { createdClient } from '../support/graphql/administration.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { thoroughly } from '../support/harness/in-turn.ts';
import { type Portcullis, startOnRealServers, startReplica } from '../support/harness.ts';
import { logged, loggedSoon, notify, overSse, registered } from '../support/realtime/live.ts';
import { temporaryFolder } from '../support/services/folders.ts';
import { describeReal } from '../support/services/real.ts';
import { startRedis } from '../support/services/redis.ts';
import { type ClusterMember, moveSlot, startRedisCluster } from '../support/services/redis-cluster.ts';
import { wakeUpsContract } from './wake-ups.contract.ts';

/** Longer than the tests take: what comes live has been woken for. */
const NEVER_MS = 3_600_000;

describeReal(['postgres', 'redis', 'kafka'], 'on a Redis Cluster', () => {
  const cluster = beforeTests(() => startRedisCluster({ replicas: 1 }));
  let first: ClusterMember;
  let second: ClusterMember;

  beforeAll(async () => {
    const [one, two] = cluster.masters;
    if (!one || !two) throw new Error('a cluster has masters');
    [first, second] = [one, two];
  });

  describe('wake-ups, by the common contract', () => {
    wakeUpsContract(async () => {
      const channelPrefix = `${randomUUID()}:`;
      const open = ({ url }: ClusterMember) => RedisWakeUps.open({ url, channelPrefix });
      const ends = await Promise.all([open(first), open(second)]);
      await hear(ends);
      return ends;
    });
  });

  describe('the service', () => {
    let p: Portcullis;
    let replica: Portcullis;

    beforeAll(async () => {
      const overrides: Overrides = { streams: (options) => ({ ...options, pollMs: NEVER_MS }) };
      p = await startOnRealServers({ env: { REDIS_URL: first.url }, overrides });
      replica = await startReplica(p, { env: { PORTCULLIS_ROLE: 'gateway' }, overrides });
    });
    afterAll(async () => {
      await replica[Symbol.asyncDispose]();
      await p[Symbol.asyncDispose]();
    });

    const healthy = () =>
      vi.waitFor(() => Promise.all([p, replica].map(({ service }) => service.context.cache.checkHealth())));
    const accounts = async (at: Portcullis, token: string) => (await at.call('GET', '/v1/accounts', { token })).status;

    /** Whatever of it holds for one server holds here: a login ends everywhere, a limit is one for all replicas. */
    async function serves(): Promise<void> {
      const grant = { grant_type: 'password', ...p.demo.client, ...p.demo.supervisor };
      const login = await p.call('POST', '/v2/oauth/token', { json: grant });
      expect(login.status).toBe(200);
      const { access_token: token, refresh_token: refresh } = login.json;
      expect([await accounts(p, token), await accounts(replica, token)]).toEqual([200, 200]);
      await p.call('POST', '/v2/oauth/revoke', { json: { ...p.demo.client, token: refresh } });
      expect(await accounts(p, token)).toBe(401);
      await expect.poll(() => accounts(replica, token)).toBe(401);
      const { credentials } = await createdClient(p, await p.clientToken(), {
        scopes: ['accounts:read'],
        rateLimit: { requestsPerHour: 5 },
      });
      const limited = await p.clientToken(credentials);
      const statuses: number[] = [];
      for (let i = 0; i < 3; i += 1) statuses.push(await accounts(p, limited), await accounts(replica, limited));
      expect(statuses).toEqual([200, 200, 200, 200, 429, 429]);
    }

    /** Something that is notified at one replica wakes a subscriber of the other, though one wake-up may be lost. */
    async function wakes(): Promise<void> {
      await using live = await overSse(replica, { token: await p.clientToken() });
      while (live.cursors.length === 0) {
        const before = (await logged(p)).length;
        const [id = ''] = await registered(p, 1);
        await notify(p, id, 2);
        await loggedSoon(p, before + 1);
        await vi.waitFor(() => expect(live.cursors.length).toBeGreaterThan(0), { timeout: 300 }).catch(() => undefined);
      }
    }

    it('D6-10 D3-28: logins, limits and wake-ups are shared by replicas, as with one Redis server', async () => {
      await healthy();
      await serves();
      await wakes();
    });

    it('D3-28: requests succeed or get 503 while slots move, and sessions stay valid', async () => {
      const slot = await cluster.slotOf(`{${p.demo.node_id}}`);
      const from = await cluster.masterOf(`{${p.demo.node_id}}`);
      const token = await p.loginToken();
      const to = from === second ? first : second;
      const during: number[] = [];
      await moveSlot(slot, from, to, async () => void during.push(await accounts(p, token)));
      // A slot that is half here and half there may have nobody who can tell: 503, never 401.
      expect([200, 503]).toContain(during[0]);
      await expect.poll(() => accounts(p, token)).toBe(200);
      await expect.poll(() => accounts(replica, token)).toBe(200);
      await moveSlot(slot, to, from);
      await expect.poll(() => accounts(replica, token)).toBe(200);
      await serves();
    });

    it('D3-28 D6-10: after a failover to a replica, sessions stay valid', async () => {
      const token = await p.loginToken();
      await first.kill();
      await cluster.replicas[0]?.takeOver();
      await healthy();
      await expect.poll(() => accounts(p, token)).toBe(200);
      await expect.poll(() => accounts(replica, token)).toBe(200);
      await serves();
      await wakes();
    });
  });

  it('D6-10: a process connected to a member that leaves the cluster sends wake-ups again', async () => {
    const [, , third] = cluster.masters;
    const [replica] = cluster.replicas;
    if (!third || !replica) throw new Error('a cluster of four');
    const channelPrefix = `${randomUUID()}:`;
    const stranded = await RedisWakeUps.open({ url: third.url, channelPrefix });
    const other = await RedisWakeUps.open({ url: replica.url, channelPrefix });
    const heard = new Set<string>();
    other.listen((nodeId) => heard.add(nodeId));
    let seq = 0n;
    const told = (nodeId: string) => {
      seq += 1n;
      stranded.notify(nodeId, seq);
      return heard.has(nodeId);
    };
    await expect.poll(() => told('before')).toBe(true);
    await third.command('FLUSHALL');
    await third.command('CLUSTER', 'RESET');
    for (const { command } of [second, replica]) await command('CLUSTER', 'FORGET', third.id);
    // Whatever was on its way before it was forgotten.
    heard.clear();
    await expect.poll(() => told('after')).toBe(true);
    await Promise.all([stranded.stop(), other.stop()]);
  });
});

describeReal('redis', 'when a single server replaces a Redis Cluster', () => {
  thoroughly('D6-10: wake-ups use the single server, and no longer reconnect', async () => {
    await using cluster = await startRedisCluster();
    const [first] = cluster.masters;
    if (!first) throw new Error('a cluster has masters');
    const open = () => RedisWakeUps.open({ url: first.url, channelPrefix: `${first.port}:` });
    const ends: [WakeUps, WakeUps] = [await open(), await open()];
    await hear(ends);
    await Promise.all(cluster.masters.map((member) => member.kill()));
    const dataDir = await temporaryFolder();
    const { password } = new URL(first.url);
    const server = await startRedis({ dataDir, port: first.port, settings: [`requirepass ${password}`] });
    await hear(ends);
    const client = await createClient({ url: first.url }).connect();
    const connections = async () => /total_connections_received:\d+/.exec(await client.info('stats'))?.[0];
    // An end may be on its way back from a member that is gone.
    const settled = async () => {
      const before = await connections();
      await hear(ends);
      // It looks again every three seconds.
      await delay(4_000);
      return (await connections()) === before;
    };
    await expect.poll(settled).toBe(true);
    await client.close();
    await Promise.all(ends.map((end) => end.stop()));
    await server.stop();
    await rm(dataDir, { recursive: true, force: true });
  });
});

/** Waits until each end hears the other, and nothing is on its way. */
async function hear([near, far]: [WakeUps, WakeUps]): Promise<void> {
  for (const [name, from, to] of [
    ['near', near, far],
    ['far', far, near],
  ] as const) {
    let last = 0n;
    const hush = to.listen((nodeId, seq) => {
      if (nodeId === name) last = seq;
    });
    let seq = 0n;
    do {
      seq += 1n;
      from.notify(name, seq);
      await vi.waitFor(() => expect(last).toBe(seq), { timeout: 500, interval: 5 }).catch(() => undefined);
    } while (last !== seq);
    hush();
  }
}

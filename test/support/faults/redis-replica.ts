import { setTimeout as delay } from 'node:timers/promises';
import { createClient } from 'redis';
import { vi } from 'vitest';
import { type FaultProxy, faultProxy } from '../services/fault-proxy.ts';
import { freeze } from '../services/freeze.ts';
import { type RedisServer, startRedis } from '../services/redis.ts';
import type { Cluster, Server } from './cluster.ts';
import type { Fault } from './faults.ts';

/** How the former server leaves: it dies, is frozen for good, or becomes a replica of the new one and stays. */
export type RedisLeave = 'killed' | 'frozen' | 'a replica itself';

/** What is done while the replica hears nothing more, and once the replica has the address. */
export interface Around {
  before?(cluster: Cluster): Promise<void>;
  behind?(cluster: Cluster): Promise<void>;
  replaced?(cluster: Cluster): Promise<void>;
}

const LAG_MS = 1_000;
const DECISION_MS = 1_000;
let replicas = 0;

/** A replica of the cluster's Redis, which lacks the last second, takes over its address; nobody ends connections. */
export function redisReplaced(leave: RedisLeave, { before, behind, replaced }: Around = {}): Fault {
  return {
    name: `redis: ${leave}, its replica (${LAG_MS / 1_000} s behind) takes over`,
    run: async (cluster) => {
      const { redis } = cluster.servers;
      const former = { pid: redis.pid(), address: redis.address() };
      await before?.(cluster);
      const { replica, link } = await replicaOf({ ...cluster, redis });
      link.set('frozen');
      await Promise.all([delay(LAG_MS), behind?.(cluster)]);
      await redisCommand(replica.url, 'REPLICAOF', 'NO', 'ONE');
      if (leave === 'killed') process.kill(former.pid, 'SIGKILL');
      else if (leave === 'frozen') await freeze(former.pid);
      else await redisCommand(former.address, 'REPLICAOF', '127.0.0.1', `${replica.port}`);
      await delay(DECISION_MS);
      redis.become(replica);
      await replaced?.(cluster);
    },
  };
}

/** Starts a replica of a Redis, behind a line of its own to it. */
export async function replicaOf({
  redis,
  folder,
  defer,
}: Pick<Cluster, 'folder' | 'defer'> & { redis: Pick<Server, 'address'> }): Promise<{
  replica: RedisServer;
  link: FaultProxy;
}> {
  replicas += 1;
  const link = await faultProxy(Number(new URL(redis.address()).port));
  defer(() => link[Symbol.asyncDispose]());
  const settings = [`replicaof 127.0.0.1 ${link.port}`, 'repl-diskless-sync-delay 0'];
  const replica = await startRedis({ dataDir: folder(`redis-replica-${replicas}`), settings });
  defer(() => replica.stop());
  await vi.waitFor(
    async () => {
      const info = String(await redisCommand(replica.url, 'INFO', 'replication'));
      if (!info.includes('master_link_status:up')) throw new Error(`it does not follow: ${info}`);
    },
    { timeout: 20_000, interval: 50 },
  );
  return { replica, link };
}

/** Runs a command on the server at a URL. */
export async function redisCommand(url: string, ...args: string[]): Promise<unknown> {
  const client = await createClient({ url, socket: { reconnectStrategy: false } })
    .on('error', () => undefined)
    .connect();
  try {
    return await client.sendCommand(args);
  } finally {
    client.destroy();
  }
}

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createClient } from 'redis';
import { vi } from 'vitest';
import { temporaryFolder } from './folders.ts';
import { freePorts } from './ports.ts';
import { type RedisServer, startRedis } from './redis.ts';

const SLOT_COUNT = 16_384;
/** The servers of a cluster speak to each other at a port that is so much higher. */
const BUS_OFFSET = 10_000;
const ATTEMPTS = 5;
const PASSWORD = 'told-in-the-url';

const SETTINGS = [
  'cluster-enabled yes',
  'cluster-config-file nodes.conf',
  // On a busy machine a server may get no turn for seconds, which must not cost it its slots: tests name who takes over.
  'cluster-node-timeout 60000',
  // Without it all slots are refused when the master of some is away.
  'cluster-require-full-coverage no',
  'cluster-replica-validity-factor 0',
  'repl-diskless-sync yes',
  'repl-diskless-sync-delay 0',
  `requirepass ${PASSWORD}`,
  `masterauth ${PASSWORD}`,
];

/** One of a cluster; it keeps its port and its place in the cluster when it is started again. */
export interface ClusterMember {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** Its name in the cluster. */
  readonly id: string;
  command(...args: string[]): Promise<unknown>;
  /** Ends it by SIGKILL. */
  kill(): Promise<void>;
  /** Starts it again, emptied. */
  start(): Promise<void>;
  /** Takes the slots of the master that it is a replica of. */
  takeOver(): Promise<void>;
}

export interface RedisCluster extends AsyncDisposable {
  masters: ClusterMember[];
  /** One for each master, from the first one on. */
  replicas: ClusterMember[];
  /** The slot of a key, as the servers have it. */
  slotOf(key: string): Promise<number>;
  /** Who had the slot of a key at the start. */
  masterOf(key: string): Promise<ClusterMember>;
}

/** Starts three masters that share the slots, and replicas of as many of them, from the first one on. */
export async function startRedisCluster({ replicas = 0 } = {}): Promise<RedisCluster> {
  const root = await temporaryFolder();
  const members: ClusterMember[] = [];
  const stop = async () => {
    await Promise.all(members.map((member) => member.kill()));
    await rm(root, { recursive: true, force: true });
  };
  try {
    while (members.length < 3 + replicas) members.push(await startMember(join(root, `${members.length}`)));
    const [first, second, third, ...followers] = members;
    if (!first || !second || !third) throw new Error('a cluster has three masters');
    const masters = [first, second, third];
    const share = Math.ceil(SLOT_COUNT / masters.length);
    for (const [index, { command }] of masters.entries()) {
      const slots = Array.from({ length: share }, (_, at) => index * share + at).filter((slot) => slot < SLOT_COUNT);
      await command('CLUSTER', 'SET-CONFIG-EPOCH', `${index + 1}`);
      await command('CLUSTER', 'ADDSLOTS', ...slots.map(String));
    }
    for (const { port } of members.slice(1)) await first.command('CLUSTER', 'MEET', '127.0.0.1', `${port}`);
    await agree(members);
    for (const [index, replica] of followers.entries()) await follow(replica, masters[index] ?? first);
    const slotOf = async (key: string) => Number(await first.command('CLUSTER', 'KEYSLOT', key));
    const masterOf = async (key: string) => masters[Math.floor((await slotOf(key)) / share)] ?? first;
    return { masters, replicas: followers, slotOf, masterOf, [Symbol.asyncDispose]: stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function agree(members: readonly ClusterMember[]): Promise<void> {
  await vi.waitFor(
    async () => {
      for (const { command } of members) {
        const info = String(await command('CLUSTER', 'INFO'));
        const all = info.includes('cluster_state:ok') && info.includes(`cluster_known_nodes:${members.length}`);
        if (!all) throw new Error(`the cluster is not formed: ${info}`);
      }
    },
    { timeout: 20_000, interval: 50 },
  );
}

async function follow(replica: ClusterMember, master: ClusterMember): Promise<void> {
  await replica.command('CLUSTER', 'REPLICATE', master.id);
  await vi.waitFor(
    async () => {
      const info = String(await replica.command('INFO', 'replication'));
      if (!info.includes('master_link_status:up')) throw new Error(`it does not follow: ${info}`);
    },
    { timeout: 20_000, interval: 50 },
  );
}

async function startMember(dataDir: string): Promise<ClusterMember> {
  let server = await startSomewhere(dataDir);
  const { port } = server;
  const url = `redis://:${PASSWORD}@127.0.0.1:${port}`;
  const connect = () =>
    createClient({ url, socket: { reconnectStrategy: false } })
      .on('error', () => undefined)
      .connect();
  let client = await connect();
  const command = async (...args: string[]) => {
    if (!client.isReady) client = await connect();
    return client.sendCommand(args);
  };
  return {
    url,
    port,
    get pid() {
      return server.pid;
    },
    id: String(await command('CLUSTER', 'MYID')),
    command,
    async kill() {
      if (client.isOpen) client.destroy();
      try {
        process.kill(server.pid, 'SIGKILL');
      } catch {
        // It has ended.
      }
      await server.stop();
    },
    async start() {
      server = await startRedis({ dataDir, port, settings: SETTINGS });
    },
    takeOver: async () => void (await command('CLUSTER', 'FAILOVER', 'TAKEOVER')),
  };
}

/** At a port whose bus port is free too. */
async function startSomewhere(dataDir: string): Promise<RedisServer> {
  for (let attempt = 1; ; attempt += 1) {
    const ports = await freePorts(8);
    const port = ports.find((free) => free + BUS_OFFSET <= 65_535);
    try {
      return await startRedis({ dataDir, port, settings: SETTINGS });
    } catch (error) {
      if (attempt === ATTEMPTS) throw error;
    }
  }
}

/** Moves a slot with its keys to another master; `halfway` is called when the first half of its keys, by name, has gone. */
export async function moveSlot(
  slot: number,
  from: ClusterMember,
  to: ClusterMember,
  halfway: () => Promise<void> = async () => undefined,
): Promise<void> {
  await to.command('CLUSTER', 'SETSLOT', `${slot}`, 'IMPORTING', from.id);
  await from.command('CLUSTER', 'SETSLOT', `${slot}`, 'MIGRATING', to.id);
  const keys = await from.command('CLUSTER', 'GETKEYSINSLOT', `${slot}`, '1000');
  const sorted = Array.isArray(keys) ? keys.map(String).toSorted() : [];
  const half = Math.ceil(sorted.length / 2);
  const migrate = async (some: string[]) => {
    if (some.length === 0) return;
    const args = ['127.0.0.1', `${to.port}`, '', '0', '5000', 'AUTH', PASSWORD, 'KEYS', ...some];
    await from.command('MIGRATE', ...args);
  };
  await migrate(sorted.slice(0, half));
  await halfway();
  await migrate(sorted.slice(half));
  await to.command('CLUSTER', 'SETSLOT', `${slot}`, 'NODE', to.id);
  await from.command('CLUSTER', 'SETSLOT', `${slot}`, 'NODE', to.id);
}

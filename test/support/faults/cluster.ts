import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { vi } from 'vitest';
import type { Demo } from '../../../src/app/demo/demo.ts';
import { ALL_TOPICS } from '../../../src/events/bus/topics.ts';
import { type CliResult, portcullis } from '../cli/in-process.ts';
import { type FaultProxy, faultProxy } from '../services/fault-proxy.ts';
import { temporaryFolder } from '../services/folders.ts';
import { freeze } from '../services/freeze.ts';
import { createTopics } from '../services/isolation.ts';
import { startKafka } from '../services/kafka.ts';
import { freePorts } from '../services/ports.ts';
import { startPostgres } from '../services/postgres.ts';
import { startRedis } from '../services/redis.ts';
import { ROOT, type Running, runCli, startInstance } from '../start/process.ts';
import type { Network } from './network.ts';

export type ServerName = 'kafka' | 'redis' | 'postgres';
export type Role = 'all' | 'gateway' | 'worker';

/** Something that faults are done to. */
export interface Victim {
  /** Ends it with SIGKILL. */
  kill(): Promise<void>;
  /** Starts it again where it was, with the data that it had. */
  restart(): Promise<void>;
  freeze(): Promise<void>;
  thaw(): void;
}

export interface Server extends Victim {
  /** The product's way to it. */
  proxy: FaultProxy;
  /** Where it is without a fault in between; empty of Kafka. */
  address(): string;
  pid(): number;
  dataDir: string;
  /**
   * Makes another server the one of this name, as an operator moves an address: new connections come to it, open ones
   * stay where they are. The former one is ended with the cluster.
   */
  become(next: StartedServer): void;
}

/** A process of the product, at the same addresses in all its lives. */
export interface Replica extends Victim {
  role: Role;
  baseUrl: string;
  adminUrl: string;
  /** Starts this source tree's code where another one's ran; later lives are of this one too. */
  upgrade(): Promise<void>;
  signal(signal: NodeJS.Signals): void;
  /** What it has logged in all its lives. */
  log(): string;
  /** Ends it in order; gives its exit code. */
  stop(): Promise<number | null>;
  /** Resolves when `/readyz` says that every part is well. */
  ready(): Promise<void>;
}

/** Servers and processes of its own, so that any of them can be killed. */
export interface Cluster extends AsyncDisposable {
  servers: Record<ServerName, Server>;
  replicas: Replica[];
  /** Where the processes are, if not beside their servers. */
  network: Network | undefined;
  demo: Demo;
  /** The value of the webhook's `Authorization` header. */
  webhook: string;
  /** Runs a command of this source tree's, as an operator would, and gives what it prints. */
  command(args: string[]): Promise<string>;
  /** PostgreSQL and Kafka without a fault in between. */
  direct: { readonly databaseUrl: string; brokers: string; topicPrefix: string };
  /** The variables of every process, by which commands find the same servers. */
  env: Record<string, string>;
  /** A new folder, which is removed with the cluster. */
  folder(name: string): string;
  /** Ends something with the cluster, before its servers and processes. */
  defer(end: () => unknown): void;
}

/** What a process has of its own: variables, and a command that starts it. */
export interface Own {
  env?: Record<string, string>;
  through?: readonly string[];
}

const WEBHOOK_PASSWORD = 'a webhook password for tests';
const TOPIC_PREFIX = 'test-';

export interface ClusterOptions {
  partitions: number;
  /** Where the processes keep their data, if not on servers of the cluster. */
  stores?: (stack: AsyncDisposableStack) => Promise<Stores>;
  /** The source tree of the processes, if not this one. */
  tree?: string | undefined;
  /** Where the processes are, if not beside their servers. */
  network?: Network;
  /** Variables of every process. */
  env?: Record<string, string>;
  /** By the place of the process among the roles. */
  own?: Record<number, Own>;
}

/** PostgreSQL, Redis and Kafka of a cluster. */
export type Stores = Pick<Cluster, 'servers' | 'direct'> & {
  /** The processes' way to them. */
  env: Record<'DATABASE_URL' | 'REDIS_URL' | 'KAFKA_BROKERS', string>;
};

/** PostgreSQL, Redis and Kafka behind fault proxies, the demo, and a process for each role: of this source tree, or of another one. */
export async function startCluster(roles: readonly Role[], options: ClusterOptions): Promise<Cluster> {
  const { partitions, tree = ROOT, network } = options;
  await using stack = new AsyncDisposableStack();
  const root = await temporaryFolder();
  stack.defer(() => rm(root, { recursive: true, force: true }));
  const stores = await (options.stores?.(stack) ?? ownStores(stack, root, network));
  const { brokers, topicPrefix } = stores.direct;
  const dataDir = join(root, 'instance');
  await createTopics(brokers, topicPrefix, ALL_TOPICS, partitions);
  const env = {
    DATA_DIR: dataDir,
    ...stores.env,
    TOPIC_PREFIX: topicPrefix,
    WEBHOOK_USERNAME: 'chain-processor',
    WEBHOOK_PASSWORD,
    ...options.env,
  };
  await command(tree, ['migrate'], env);
  await command(tree, ['seed'], env);
  const replicas: Replica[] = [];
  for (const [index, role] of roles.entries()) {
    const own = options.own?.[index] ?? {};
    const spool = { AUDIT_SPOOL_DIR: join(root, `audit-${index}`) };
    const variables = { ...env, ...network?.variablesOf(env), ...spool, ...own.env };
    replicas.push(await replica(stack, { tree, role, env: variables, through: own.through ?? network?.through }));
  }
  const others = stack.use(new AsyncDisposableStack());
  const held = stack.move();
  return {
    get servers() {
      return stores.servers;
    },
    replicas,
    network,
    demo: JSON.parse(await readFile(join(dataDir, 'demo.json'), 'utf8')),
    command: (args) => command(ROOT, args, env),
    webhook: `Basic ${Buffer.from(`chain-processor:${WEBHOOK_PASSWORD}`).toString('base64')}`,
    direct: stores.direct,
    env,
    folder: (name) => join(root, name),
    defer: (end) => others.defer(async () => void (await end())),
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  };
}

async function ownStores(stack: AsyncDisposableStack, root: string, network: Network | undefined): Promise<Stores> {
  const proxyOf = async () => stack.use(await faultProxy(0, network && '0.0.0.0'));
  const [postgres, redis, kafka] = await Promise.all([
    server(stack, join(root, 'postgres'), await proxyOf(), (port, dataDir) => startPostgres({ dataDir, port })),
    server(stack, join(root, 'redis'), await proxyOf(), (port, dataDir) => startRedis({ dataDir, port })),
    server(stack, join(root, 'kafka'), await proxyOf(), (port, dataDir, { port: advertisedPort }) =>
      startKafka({ dataDir, port, advertisedPort, advertisedHost: network?.address }),
    ),
  ]);
  const brokers = `127.0.0.1:${kafka.proxy.port}`;
  return {
    servers: { kafka, redis, postgres },
    direct: {
      get databaseUrl() {
        return postgres.address();
      },
      brokers,
      topicPrefix: TOPIC_PREFIX,
    },
    env: {
      DATABASE_URL: postgres.proxy.urlOf(postgres.address()),
      REDIS_URL: redis.proxy.urlOf(redis.address()),
      KAFKA_BROKERS: brokers,
    },
  };
}

export interface StartedServer {
  pid: number;
  port: number;
  url?: string;
  stop(): Promise<void>;
}

/** A server behind a fault proxy. */
export async function server(
  stack: AsyncDisposableStack,
  dataDir: string,
  proxy: FaultProxy,
  start: (port: number | undefined, dataDir: string, proxy: FaultProxy) => Promise<StartedServer>,
): Promise<Server> {
  let running = await start(undefined, dataDir, proxy);
  const former: StartedServer[] = [];
  stack.defer(async () => void (await Promise.all([running, ...former].map((one) => one.stop()))));
  proxy.targetPort = running.port;
  return {
    proxy,
    dataDir,
    address: () => running.url ?? '',
    pid: () => running.pid,
    become: (next) => {
      former.push(running);
      running = next;
      proxy.targetPort = next.port;
    },
    kill: async () => {
      process.kill(running.pid, 'SIGKILL');
      await running.stop();
    },
    // What a killed server leaves behind, children and ports, takes a moment to go.
    restart: async () => {
      running = await vi.waitFor(() => start(running.port, dataDir, proxy), { interval: 200 });
    },
    freeze: () => freeze(running.pid),
    thaw: () => void process.kill(running.pid, 'SIGCONT'),
  };
}

interface ReplicaOptions {
  tree: string;
  role: Role;
  env: Record<string, string>;
  /** The command that starts it, if another one does. */
  through: readonly string[] | undefined;
}

async function replica(
  stack: AsyncDisposableStack,
  { tree: firstTree, role, env, through }: ReplicaOptions,
): Promise<Replica> {
  const [port, adminPort] = await freePorts(2);
  const variables = { ...env, PORTCULLIS_ROLE: role, PORT: `${port}`, ADMIN_PORT: `${adminPort}` };
  let tree = firstTree;
  const runs: Running[] = [];
  const start = async () => {
    const started = await startInstance(variables, undefined, through, tree);
    runs.push(started);
    return started;
  };
  let running: Running = await start();
  stack.defer(() => running[Symbol.asyncDispose]());
  const { baseUrl, adminUrl } = running;
  return {
    role,
    baseUrl,
    adminUrl,
    log: () => runs.map((run) => run.stdout()).join(''),
    kill: async () => void (await running.kill('SIGKILL')),
    restart: async () => {
      running = await start();
    },
    upgrade: async () => {
      tree = ROOT;
      running = await start();
    },
    freeze: () => freeze(running.pid),
    thaw: () => void process.kill(running.pid, 'SIGCONT'),
    signal: (signal) => void process.kill(running.pid, signal),
    stop: async () => (await running.kill('SIGTERM')).code,
    ready: () =>
      vi.waitFor(
        async () => {
          const answer = await fetch(`${adminUrl}/readyz`, { signal: AbortSignal.timeout(1_000) });
          if (answer.status !== 200) throw new Error(`${role} is not well: ${await answer.text()}`);
          await answer.text();
          const report = await fetch(`${adminUrl}/readyz`);
          const { status } = (await report.json()) as { status: string };
          if (status !== 'ok') throw new Error(`${role} is ${status}`);
        },
        { interval: 50 },
      ),
  };
}

async function command(tree: string, args: string[], env: Record<string, string>): Promise<string> {
  // Another tree's commands are processes of it.
  const { code, out, err } = tree === ROOT ? await portcullis(args, env) : await spawned(tree, args, env);
  if (code !== 0) throw new Error(`portcullis ${args.join(' ')} failed with ${code}: ${err}`);
  return out;
}

async function spawned(tree: string, args: string[], env: Record<string, string>): Promise<CliResult> {
  const { code, stdout: out, stderr: err } = await runCli(args, env, '', tree);
  return { code: code ?? -1, out, err };
}

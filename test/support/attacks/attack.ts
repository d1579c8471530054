import { setTimeout as delay } from 'node:timers/promises';
import { vi } from 'vitest';
import { type Cluster, type Replica, startCluster } from '../faults/cluster.ts';
import { listening, registerMany, tokenOf } from '../faults/faults.ts';
import { sharedStores } from '../faults/shared-stores.ts';
import { withPostgres } from '../services/pg-client.ts';
import { notification } from '../webhook/fixture.ts';

/** A tenant with a client that has every permission an attack needs. */
export interface Tenant {
  nodeId: string;
  token: string;
}

/** Two gateways and a worker on real servers, two tenants that attack, and one that only uses the service. */
export interface AttackHarness extends AsyncDisposable {
  cluster: Cluster;
  gateways: Replica[];
  attackers: [Tenant, Tenant];
  bystander: Tenant;
}

const ROLES = ['gateway', 'gateway', 'worker'] as const;
const SCOPES =
  'accounts:read,audit:read,transactions:read,users:read,users:migrate,wallets:read,wallet-rules:read,wallet-rules:write';

/** `env` are variables of every process. */
export async function startAttackHarness(env: Record<string, string> = {}): Promise<AttackHarness> {
  const cluster = await startCluster(ROLES, { partitions: 3, stores: sharedStores, env });
  try {
    const { node_id: nodeId, other_node: other } = cluster.demo;
    const attackers: [Tenant, Tenant] = [{ nodeId, token: await tokenOf(cluster) }, await newTenant(cluster)];
    const bystander = { nodeId: other.node_id, token: await tokenOf(cluster, other.client) };
    return {
      cluster,
      gateways: listening(cluster),
      attackers,
      bystander,
      [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose](),
    };
  } catch (error) {
    await cluster[Symbol.asyncDispose]();
    throw error;
  }
}

/** A new tenant whose client has every permission an attack needs. */
export async function newTenant(cluster: Cluster): Promise<Tenant> {
  const node = JSON.parse(await cluster.command(['node', 'create', '--name', 'Attacker', '--json']));
  const flags = ['--name', 'Attacker', '--grants', 'client_credentials', '--scopes', SCOPES, '--json'];
  const client = JSON.parse(await cluster.command(['client', 'create', '--node', node.id, ...flags]));
  return { nodeId: node.id, token: await tokenOf(cluster, client) };
}

const STATUSES = [1, 2, 3];
const POSTS_AT_ONCE = 8;

/** Has a tenant's log hold at least so many events, which come by way of the webhook. Returns how many it holds. */
export async function logEvents(
  { cluster, gateways }: AttackHarness,
  { nodeId }: Tenant,
  count: number,
): Promise<number> {
  const head = () =>
    withPostgres(cluster.direct.databaseUrl, async (client) => {
      const { rows } = await client.query('select seq from node_event_seq where node_id = $1', [nodeId]);
      return Number(rows[0]?.seq ?? 0);
    });
  const ids = await registerMany(cluster, Math.ceil((count - (await head())) / STATUSES.length), nodeId);
  // A status that comes before an earlier one leaves that one without an event: each has its wave.
  const bodies = STATUSES.flatMap((status) => ids.map((id) => JSON.stringify(notification({ id, status }))));
  const headers = { 'content-type': 'application/json', authorization: cluster.webhook };
  const post = async (body: string, at: number) => {
    const url = `${gateways[at % gateways.length]?.baseUrl}/v2/webhooks/custodial`;
    await vi.waitFor(async () => {
      const { status } = await fetch(url, { method: 'POST', headers, body });
      if (status !== 200) throw new Error(`a notification is answered ${status}`);
    });
  };
  for (let at = 0; at < bodies.length; at += POSTS_AT_ONCE) {
    await Promise.all(bodies.slice(at, at + POSTS_AT_ONCE).map(post));
  }
  return vi.waitFor(
    async () => {
      const logged = await head();
      if (logged < count) throw new Error(`${logged} of ${count} events are logged`);
      return logged;
    },
    { interval: 100 },
  );
}

/** What others notice of an attack: milliseconds, unless it says otherwise. */
export interface Impact {
  /** Requests of the bystander and probes of `/livez`: how long the slowest, and the one in the middle, took. */
  slowest: number;
  median: number;
  requests: number;
  /** Requests that were not answered with 200. */
  failed: string[];
  /** The longest that a gateway's event loop was held up. */
  loop: number;
  /** The most memory that a gateway took, in MiB. */
  memory: number;
}

const REST_MS = 20;
const SAMPLE_MS = 500;
const TIMEOUT_MS = 120_000;
const ACCOUNTS = '{ accounts(first: 5) { edges { node { id name } } } }';

/** Does something, and tells what others notice of it. */
export async function impactOf(
  { gateways, bystander }: Pick<AttackHarness, 'gateways' | 'bystander'>,
  work: () => Promise<void>,
): Promise<Impact> {
  const took: number[] = [];
  const failed: string[] = [];
  let loop = 0;
  let memory = 0;
  let isOver = false;
  const ask = async (url: string, init: RequestInit = {}) => {
    const startedAt = performance.now();
    try {
      const answer = await fetch(url, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) });
      const text = await answer.text();
      if (answer.status !== 200 || text.includes('"errors"')) failed.push(`${url} ${answer.status} ${text}`);
    } catch (error) {
      failed.push(`${url} ${String(error)}`);
    }
    took.push(performance.now() - startedAt);
  };
  const authorization = `Bearer ${bystander.token}`;
  const query = { authorization, 'content-type': 'application/json' };
  const use = async ({ baseUrl, adminUrl }: Replica) => {
    while (!isOver) {
      await ask(`${adminUrl}/livez`);
      await ask(`${baseUrl}/v1/accounts`, { headers: { authorization } });
      await ask(`${baseUrl}/graphql`, { method: 'POST', headers: query, body: JSON.stringify({ query: ACCOUNTS }) });
      await delay(REST_MS);
    }
  };
  const sample = async ({ adminUrl }: Replica) => {
    // A gateway whose event loop was held up may close the connection that waits for it.
    const text = await vi.waitFor(async () => (await fetch(`${adminUrl}/metrics`)).text());
    const gauge = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
    return { loop: gauge('nodejs_eventloop_lag_max_seconds') * 1_000, bytes: gauge('process_resident_memory_bytes') };
  };
  const watch = async (gateway: Replica) => {
    // Each sample begins the next one.
    await sample(gateway);
    for (let isLast = false; !isLast; ) {
      await delay(SAMPLE_MS);
      isLast = isOver;
      const seen = await sample(gateway);
      loop = Math.max(loop, seen.loop);
      memory = Math.max(memory, seen.bytes / 1_048_576);
    }
  };
  const observers = gateways.flatMap((gateway) => [use(gateway), watch(gateway)]);
  try {
    await work();
  } finally {
    isOver = true;
    await Promise.all(observers);
  }
  took.sort((one, other) => one - other);
  const round = (ms = 0) => Math.round(ms * 10) / 10;
  return {
    slowest: round(took.at(-1)),
    median: round(took[Math.floor(took.length / 2)]),
    requests: took.length,
    failed,
    loop: round(loop),
    memory: Math.round(memory),
  };
}

import { setTimeout as delay } from 'node:timers/promises';
import { withPostgres } from '../services/pg-client.ts';
import type { Cluster, Replica, Role, ServerName, Victim } from './cluster.ts';
import { type Findings, findings, READERS } from './findings.ts';
import { type Journal, startLoad, warmUp } from './load.ts';
import { startReader } from './reader.ts';

/** A fault: what it is done to, and for how long. */
export interface Fault {
  name: string;
  run(cluster: Cluster): Promise<void>;
}

/** What a fault did to those who were using the service, and what is amiss after it. */
export interface FaultReport {
  name: string;
  acknowledged: number;
  answers: Journal['answers'];
  users: number;
  /** Events that the subscribers saw together, and how often they had to come back. */
  delivered: number;
  returns: number;
  /** From the end of the fault until every process says that all parts are well, and until an event arrives of what is sent then. */
  healthyMs: number;
  amiss: Findings;
  /** What clients have sent and been told, and where the log of events stood before. */
  journal: Journal;
  after: bigint;
}

const REGISTERED = 100_000;
const BEFORE_MS = 1_000;
const AFTER_MS = 1_500;

export function killed(name: ServerName | Role, awayMs = 1_000): Fault {
  return {
    name: `${name}: kill -9, back after ${awayMs / 1_000} s`,
    run: async (cluster) => {
      const victim = victimOf(cluster, name);
      await victim.kill();
      await delay(awayMs);
      await victim.restart();
    },
  };
}

export function frozen(name: ServerName | Role, forMs: number): Fault {
  return {
    name: `${name}: frozen for ${forMs / 1_000} s`,
    run: async (cluster) => {
      const victim = victimOf(cluster, name);
      await victim.freeze();
      await delay(forMs);
      victim.thaw();
    },
  };
}

export function cut(name: ServerName, forMs: number): Fault {
  return {
    name: `${name}: cut for ${forMs / 1_000} s`,
    run: async ({ servers }) => {
      servers[name].proxy.set('cut');
      await delay(forMs);
      servers[name].proxy.set('passing');
    },
  };
}

export function delayed(name: ServerName, byMs: number, forMs: number): Fault {
  return {
    name: `${name}: each piece delayed by ${byMs / 1_000} s, for ${forMs / 1_000} s`,
    run: async ({ servers }) => {
      servers[name].proxy.delayMs = byMs;
      await delay(forMs);
      servers[name].proxy.delayMs = 0;
    },
  };
}

/** Every replica in turn, or the first ones, is stopped in order and started again, as an upgrade does it. */
export function rollingRestartOf(count = Number.POSITIVE_INFINITY): Fault {
  return {
    name: 'a rolling restart of every replica',
    run: async ({ replicas }) => {
      for (const replica of replicas.slice(0, count)) {
        await stopped(replica);
        await replica.restart();
        await replica.ready();
      }
    },
  };
}

export const rollingRestart = rollingRestartOf();

/** As the page about deployment says: this version migrates while the other one serves, then one process after the other is of this version. */
export const rollingUpgrade: Fault = {
  name: 'a rolling upgrade of every replica',
  run: async ({ replicas, command }) => {
    await command(['migrate']);
    const [first] = replicas;
    if (!first) throw new Error('there is nothing to upgrade');
    // A process of the other version may be moved to another machine before its turn.
    await stopped(first);
    await first.restart();
    await first.ready();
    for (const replica of replicas) {
      await stopped(replica);
      await replica.upgrade();
      await replica.ready();
    }
  },
};

async function stopped(replica: Replica): Promise<void> {
  const code = await replica.stop();
  if (code !== 0) throw new Error(`a ${replica.role} ended with ${code}`);
}

/**
 * Does a fault under load, as much as the machine bears or with rests, with subscribers, and looks for what is amiss when
 * it is over: as soon as nothing is, or after `settleMs`.
 */
export async function underFault(
  cluster: Cluster,
  fault: Fault,
  { restMs = 0, settleMs = 60_000, transactions = REGISTERED } = {},
): Promise<FaultReport> {
  const registered = await registerMany(cluster, transactions);
  await warmUp(cluster);
  const token = await tokenOf(cluster);
  const after = await headOf(cluster);
  const baseUrls = listening(cluster).map(({ baseUrl }) => baseUrl);
  const readers = Array.from({ length: READERS }, (_, index) =>
    startReader({ baseUrls: [...baseUrls.slice(index), ...baseUrls.slice(0, index)], token, after }),
  );
  const load = startLoad({ cluster, token, registered, restMs });
  try {
    await delay(BEFORE_MS);
    await fault.run(cluster);
    const endedAt = performance.now();
    await Promise.all(cluster.replicas.map((replica) => replica.ready()));
    await news(load.acknowledged, readers);
    const healthyMs = Math.round(performance.now() - endedAt);
    await delay(AFTER_MS);
    await load.stop();
    const amiss = await findings({ cluster, journal: load.journal, readers, after }, settleMs);
    return {
      name: fault.name,
      acknowledged: load.acknowledged(),
      answers: load.journal.answers,
      users: load.journal.users.length,
      delivered: readers.reduce((sum, { seen }) => sum + seen.length, 0),
      returns: readers.reduce((sum, reader) => sum + reader.returns(), 0),
      healthyMs,
      amiss,
      journal: load.journal,
      after,
    };
  } finally {
    load.abandon();
    await Promise.all(readers.map((reader) => reader.stop()));
  }
}

/** Resolves when something more has been acknowledged, and every subscriber has seen something more after that. */
async function news(acknowledged: () => number, readers: readonly { seen: bigint[] }[]): Promise<void> {
  const before = acknowledged();
  while (acknowledged() < before + 1) await delay(5);
  const seen = readers.map((reader) => reader.seen.length);
  while (readers.some((reader, index) => reader.seen.length <= (seen[index] ?? 0))) await delay(5);
}

/** The processes that serve requests. */
export function listening({ replicas }: Cluster): Replica[] {
  return replicas.filter(({ role }) => role !== 'worker');
}

function victimOf(cluster: Cluster, name: ServerName | Role): Victim {
  const victim: Victim | undefined =
    cluster.replicas.find(({ role }) => role === name) ?? cluster.servers[name as ServerName];
  if (!victim) throw new Error(`the cluster has no ${name}`);
  return victim;
}

/** Registers as the owning service would, without the way through Kafka. */
export async function registerMany(
  { direct, demo }: Cluster,
  count = REGISTERED,
  nodeId = demo.node_id,
): Promise<string[]> {
  const { rows } = await withPostgres(direct.databaseUrl, (client) =>
    client.query(
      `with ids as (select gen_random_uuid()::text as id from generate_series(1, ${count})),
            locked as (insert into transaction_ids (id) select id from ids)
       insert into transactions (id, node_id, collection, registered_type, registered_by, type)
       select id, $1, 'token_transactions', 1, 'topic', 1 from ids returning id`,
      [nodeId],
    ),
  );
  return rows.map(({ id }) => String(id));
}

async function headOf({ direct, demo }: Cluster): Promise<bigint> {
  const { rows } = await withPostgres(direct.databaseUrl, (client) =>
    client.query('select seq from node_event_seq where node_id = $1', [demo.node_id]),
  );
  return BigInt(String(rows[0]?.seq ?? 0));
}

/** An access token of a client, by default of the demo's. */
export async function tokenOf(
  cluster: Cluster,
  client: Cluster['demo']['client'] = cluster.demo.client,
): Promise<string> {
  const [door] = listening(cluster);
  const answer = await fetch(`${door?.baseUrl}/v2/oauth/token`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ grant_type: 'client_credentials', ...client }),
  });
  const { access_token } = (await answer.json()) as { access_token: string };
  return access_token;
}

import { Kafka, logLevel } from 'kafkajs';
import { vi } from 'vitest';
import { isDeadLetterTopic } from '../../../src/events/bus/event-bus.ts';
import { ALL_TOPICS, TOPICS } from '../../../src/events/bus/topics.ts';
import { endOf, keysInLog } from '../services/kafka-behind.ts';
import { type PostgresClient, withPostgres } from '../services/pg-client.ts';
import type { Cluster } from './cluster.ts';
import type { Journal } from './load.ts';
import type { Reader } from './reader.ts';

const DONE = 3;
/** After a promotion or a recovery a node's numbers go on behind the next multiple of it. */
const LEAP = 2n ** 32n;

/** What is not as was acknowledged; all of them empty or zero where nothing is amiss. */
export interface Findings {
  /** Transactions that were told to be Done and are not. */
  lost: string[];
  /** Those whose events are not each change once: Started, InProgress, Done. */
  doubled: string[];
  parked: number;
  /** Gaps in a node's sequence, but for the leap of a promotion. */
  gaps: number;
  deadLetters: number;
  usersLost: string[];
  usersWithoutEvent: string[];
  /** For each subscriber what it missed, and what it saw twice or out of order. */
  missed: number[];
  repeated: number[];
  wrong: string[];
}

/** How many subscribers `underFault` has. */
export const READERS = 3;

export const NOTHING_AMISS: Findings = {
  lost: [],
  doubled: [],
  parked: 0,
  gaps: 0,
  deadLetters: 0,
  usersLost: [],
  usersWithoutEvent: [],
  missed: Array(READERS).fill(0),
  repeated: Array(READERS).fill(0),
  wrong: [],
};

interface Told {
  cluster: Cluster;
  journal: Journal;
  readers: readonly Reader[];
  /** The head of the node's log when the readers began. */
  after: bigint;
}

/** Waits until everything has come to rest, or for as long as that may take, and compares it with what clients know. */
export async function findings({ cluster, journal, readers, after }: Told, timeoutMs = 60_000): Promise<Findings> {
  return withPostgres(cluster.direct.databaseUrl, async (client) => {
    await vi
      .waitFor(() => atRest(client, journal, readers), { timeout: timeoutMs, interval: 200 })
      .catch(() => undefined);
    const logged = await eventsOf(client, cluster, after);
    const log = logged.map(({ seq }) => seq);
    const events = new Set(logged.map(({ seq, id }) => `${seq} ${id}`));
    const offsets = await deadLetters(cluster);
    const users = await usersOf(client, journal);
    const { brokers, topicPrefix } = cluster.direct;
    // The users for whom a KYC token has been requested.
    const requested = new Set(await keysInLog(kafkaOf(brokers), topicPrefix + TOPICS.kycToken));
    return {
      ...(await transactionsOf(client, journal)),
      parked: await count(client, 'select count(*) from parked_notifications where id = any($1)', [
        journal.told.strangers,
      ]),
      gaps: log.filter((seq, index) => seq !== (log[index - 1] ?? after) + 1n && seq % LEAP !== 1n).length,
      deadLetters: offsets,
      usersLost: journal.users.filter((wallet) => !users.has(wallet)),
      usersWithoutEvent: journal.users.filter((wallet) => !requested.has(users.get(wallet) ?? '')),
      missed: readers.map((reader) => events.difference(new Set(reader.events)).size),
      repeated: readers.map(({ seen }) => seen.filter((seq, index) => seq <= (seen[index - 1] ?? after)).length),
      wrong: journal.wrong,
    };
  });
}

async function atRest(client: PostgresClient, journal: Journal, readers: readonly Reader[]): Promise<void> {
  const ids = [...journal.told.registered, ...journal.told.strangers];
  const done = await count(client, 'select count(*) from transactions where status = $1 and id = any($2)', [DONE, ids]);
  if (done < ids.length) throw new Error('not all is applied');
  if ((await count(client, 'select count(*) from outbox')) > 0) throw new Error('not all is relayed');
  const { rows } = await client.query('select max(seq) as seq from transaction_events');
  const head = BigInt(String(rows[0]?.seq ?? 0));
  if (readers.some(({ seen }) => (seen.at(-1) ?? 0n) < head)) throw new Error('not all is read');
}

async function transactionsOf(
  client: PostgresClient,
  { told }: Journal,
): Promise<{ lost: string[]; doubled: string[] }> {
  const ids = [...told.registered, ...told.strangers];
  const { rows } = await client.query(
    `select t.id, t.status, array_agg(e.status order by e.seq) as changes
     from transactions t left join transaction_events e on e.transaction_id = t.id where t.id = any($1) group by t.id`,
    [ids],
  );
  const found = new Map(
    rows.map(({ id, status, changes }) => [id as string, { status, changes: changes as number[] }]),
  );
  const strangers = new Set(told.strangers);
  const isOnce = (id: string) => {
    const changes = found.get(id)?.changes ?? [];
    // What was parked is applied together when its id is registered; a change that another has outrun is none.
    if (strangers.has(id)) return changes.every((status, index) => status > (changes[index - 1] ?? 0));
    return changes.join() === '1,2,3';
  };
  return {
    lost: ids.filter((id) => found.get(id)?.status !== DONE),
    doubled: ids.filter((id) => !isOnce(id)),
  };
}

async function eventsOf(
  client: PostgresClient,
  cluster: Cluster,
  after: bigint,
): Promise<{ seq: bigint; id: string }[]> {
  const { rows } = await client.query(
    'select seq, transaction_id from transaction_events where node_id = $1 and seq > $2 order by seq',
    [cluster.demo.node_id, String(after)],
  );
  return rows.map(({ seq, transaction_id: id }) => ({ seq: BigInt(String(seq)), id: String(id) }));
}

async function usersOf(client: PostgresClient, { users }: Journal): Promise<Map<string, string>> {
  const { rows } = await client.query('select id, address from users where address = any($1)', [users]);
  return new Map(rows.map(({ id, address }) => [String(address), String(id)]));
}

async function count(client: PostgresClient, sql: string, values: unknown[] = []): Promise<number> {
  const { rows } = await client.query(sql, values);
  return Number(rows[0]?.count ?? 0);
}

async function deadLetters({ direct }: Cluster): Promise<number> {
  const topics = ALL_TOPICS.filter(isDeadLetterTopic).map((topic) => direct.topicPrefix + topic);
  const ends = await Promise.all(topics.map((topic) => endOf(kafkaOf(direct.brokers), topic)));
  return ends.reduce((sum, end) => sum + end, 0);
}

function kafkaOf(brokers: string): Kafka {
  return new Kafka({ brokers: brokers.split(','), logLevel: logLevel.NOTHING });
}

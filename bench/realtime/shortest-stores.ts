import { PGlite } from '@electric-sql/pglite';
import { createClient } from '@redis/client';
import { Kafka, logLevel, Partitioners } from 'kafkajs';
import { Pool } from 'pg';
import { COPY, type Keep, recordsInto, shortestRecords } from '../lib/shortest-record.ts';
import { type PeerOptions, TOPICS, type Update } from './peer.ts';

/** An event of the log: the state of a transaction after a change. */
export interface Logged {
  seq: number;
  body: Update;
}

/** What the shortest program keeps notifications, states and events in. */
export interface Stores {
  keep: Keep;
  /** Resolves once a notification is in both topics; it is joined and logged before `onGrown` of the stores is called. */
  publish(value: string): Promise<void>;
  /** The events after a position, in order. */
  readEvents(after: number): Promise<Logged[]>;
}

const SCHEMA = `
  create table shortest_messages (topic text not null, id text not null, value text not null);
  create table shortest_states (id text primary key, key text not null, body jsonb not null);
  create table shortest_events (seq bigint primary key, id text not null, body jsonb not null);
  create table shortest_head (seq bigint not null);
  insert into shortest_head values (0)`;
/** Joins a notification and logs what has changed, numbered in the order of commits: the head is locked until then. */
const JOIN = `joined as (
    insert into shortest_states (id, key, body) values ($1, $2, $3::text::jsonb)
    on conflict (id) do update set key = excluded.key, body = excluded.body where shortest_states.key < excluded.key
    returning id, body),
  counted as (update shortest_head set seq = seq + 1 where exists (select from joined) returning seq)
  insert into shortest_events (seq, id, body) select seq, id, body from counted, joined`;
const KEEP = `kept as (insert into shortest_messages select topic, $1, $3::text from unnest($4::text[]) as t (topic))`;
const READ = 'select seq::int, body from shortest_events where seq > $1 order by seq limit 500';

/** PostgreSQL, Redis and Kafka. */
export async function onServers(
  { databaseUrl, redisUrl, file }: NonNullable<PeerOptions['servers']>,
  { brokers, prefix }: NonNullable<PeerOptions['kafka']>,
  onGrown: () => void,
): Promise<Stores> {
  const pool = new Pool({ connectionString: databaseUrl, max: 10 });
  await pool.query(SCHEMA);
  const [redis, listener] = [createClient({ url: redisUrl }), createClient({ url: redisUrl })];
  await Promise.all([redis.connect(), listener.connect()]);
  // Those of other processes wake this one, and its own wake those.
  await listener.subscribe(`${prefix}shortest`, onGrown);
  const client = new Kafka({ brokers, logLevel: logLevel.NOTHING });
  const names = TOPICS.map((topic) => `${prefix}shortest-${topic}`);
  const admin = client.admin();
  await admin.connect();
  await admin.createTopics({ topics: names.map((topic) => ({ topic, numPartitions: 12 })) });
  await admin.disconnect();
  const producer = client.producer({ createPartitioner: Partitioners.DefaultPartitioner });
  const consumer = client.consumer({ groupId: `${prefix}shortest` });
  await Promise.all([producer.connect(), consumer.connect()]);
  await consumer.subscribe({ topics: names.slice(0, 1), fromBeginning: true });
  const isJoined = Promise.withResolvers<void>();
  consumer.on('consumer.group_join', () => isJoined.resolve());
  await consumer.run({
    autoCommit: false,
    eachBatchAutoResolve: false,
    async eachBatch({ batch, resolveOffset, commitOffsetsIfNecessary, uncommittedOffsets }) {
      for (const { value, offset } of batch.messages) {
        await pool.query({ name: 'join', text: `with ${JOIN}`, values: joinValues(String(value)) });
        resolveOffset(offset);
      }
      onGrown();
      await Promise.all([redis.publish(`${prefix}shortest`, ''), commitOffsetsIfNecessary(uncommittedOffsets())]);
    },
  });
  await isJoined.promise;
  return {
    keep: shortestRecords({ file, databaseUrl }),
    async publish(value) {
      const { id: key }: Update = JSON.parse(value);
      await producer.sendBatch({
        acks: -1,
        topicMessages: names.map((topic) => ({ topic, messages: [{ key, value }] })),
      });
    },
    readEvents: async (after) => (await pool.query<Logged>({ name: 'read', text: READ, values: [after] })).rows,
  };
}

/** PostgreSQL in the process. One statement keeps a notification in both topics, joins it and logs the change. */
export async function embedded(
  { cluster, file }: NonNullable<PeerOptions['embedded']>,
  onGrown: () => void,
): Promise<Stores> {
  const startParams = [...PGlite.defaultStartParams, '-c', 'shared_buffers=16MB', '-c', 'timezone=UTC'];
  const db = await PGlite.create({ dataDir: cluster, database: 'postgres', startParams });
  // It copies them for each statement, and those of scalars are there without them.
  db.parsers = {};
  await db.exec(SCHEMA);
  return {
    keep: recordsInto(file, async (rows) => {
      await db.query(`${COPY} from '/dev/blob'`, [], { blob: new Blob([rows]) });
    }),
    async publish(value) {
      await db.query(`with ${KEEP}, ${JOIN}`, [...joinValues(value), TOPICS]);
      onGrown();
    },
    readEvents: async (after) => (await db.query<Logged>(READ, [after])).rows,
  };
}

/** What is later has the higher key. */
function joinValues(value: string): string[] {
  const { id, status, updated_at: at = '' }: Update & { updated_at?: string } = JSON.parse(value);
  return [id, `${status} ${at}`, value];
}

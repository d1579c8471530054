import { randomUUID } from 'node:crypto';
import { Kafka, logLevel } from 'kafkajs';
import { vi } from 'vitest';
import { deadLetterTopicOf } from '../../../src/events/bus/event-bus.ts';
import { TOPICS } from '../../../src/events/bus/topics.ts';
import { type Portcullis, startReplica } from '../harness.ts';
import { endOf } from '../services/kafka-behind.ts';
import { emptyFolder } from '../start/folders.ts';
import { printed, type Spawned, spawnInstance } from '../start/process.ts';
import { basic, notification } from '../webhook/fixture.ts';

/** The consumer group of transactions that a fixture registers. */
export const ADMIN_GROUP = 'portcullis.transactions.admin';

/** A worker in a process of its own, on the stores of a gateway. */
export async function workerProcess(of: Portcullis, env: Record<string, string> = {}): Promise<Spawned> {
  const spool = await emptyFolder();
  const worker = spawnInstance({ ...of.env, PORTCULLIS_ROLE: 'worker', AUDIT_SPOOL_DIR: spool.path, ...env });
  await printed(worker, /"msg":"started"/);
  const dispose = async () => {
    await worker[Symbol.asyncDispose]();
    await spool[Symbol.asyncDispose]();
  };
  return { ...worker, [Symbol.asyncDispose]: dispose };
}

/** A worker in this process. */
export function workerHere(of: Portcullis, options: Parameters<typeof startReplica>[1] = {}): Promise<Portcullis> {
  return startReplica(of, { ...options, env: { PORTCULLIS_ROLE: 'worker', ...options.env } });
}

/** A client of the brokers that an instance has. */
export function kafkaOf({ env }: Pick<Portcullis, 'env'>): Kafka {
  return new Kafka({ brokers: [env.KAFKA_BROKERS ?? ''], logLevel: logLevel.NOTHING });
}

/** Waits until a consumer group has settled with so many members. */
export async function untilMembers(kafka: Kafka, groupId: string, count: number): Promise<void> {
  await vi.waitFor(
    async () => {
      // One that has been told of another coordinator does not look for it.
      const admin = kafka.admin();
      await admin.connect();
      const { groups } = await admin.describeGroups([groupId]).finally(() => admin.disconnect());
      const [{ state, members } = { state: 'none', members: [] }] = groups;
      if (state !== 'Stable' || members.length !== count) throw new Error(`${state}, ${members.length} members`);
    },
    { interval: 250 },
  );
}

/** How much of a topic a group has committed. */
export async function committed(kafka: Kafka, groupId: string, topic: string): Promise<number> {
  const admin = kafka.admin();
  await admin.connect();
  try {
    const [offsets] = await admin.fetchOffsets({ groupId, topics: [topic] });
    const partitions = offsets?.partitions ?? [];
    return partitions.reduce((sum, { offset }) => sum + Math.max(0, Number(offset)), 0);
  } finally {
    await admin.disconnect();
  }
}

/** Registers a transaction as its owner does, so that nobody can register it otherwise. */
export async function registered({ service, demo }: Portcullis): Promise<string> {
  const id = randomUUID();
  const transaction = { id, nodeId: demo.node_id, collection: 'token_transactions', type: 1, assetId: null } as const;
  await service.context.transactions.registerByOwner(transaction);
  return id;
}

/** Notifies by the webhook that a transaction has a status; gives the status of the answer. */
export async function notify(to: Portcullis, id: string, status: number): Promise<number> {
  const { username, password } = to.webhook;
  const json = notification({ id, status, updated_at: `2026-11-21T10:31:0${status}Z` });
  const headers = { authorization: basic(username, password) };
  return (await to.call('POST', '/v2/webhooks/custodial', { json, headers })).status;
}

/** The statuses of a transaction's events, each with the one before, in the order of the node's log. */
export async function changesOf({ service }: Portcullis, id: string): Promise<string[]> {
  const door = service.context.database.db.unscoped('test');
  const events = await door.run((k) =>
    k
      .selectFrom('transaction_events')
      .select(['status', 'previous_status'])
      .where('transaction_id', '=', id)
      .orderBy('seq'),
  );
  return events.map((event) => `${event.previous_status} ${event.status}`);
}

/** The sequence numbers of the demo node's log, and its counter. */
export async function sequenceOf({ service, demo }: Portcullis): Promise<{ seqs: number[]; counter: number }> {
  const door = service.context.database.db.forNode(demo.node_id);
  const events = await door.run((k) => k.selectFrom('transaction_events').select('seq').orderBy('seq'));
  const [counter] = await door.run((k) => k.selectFrom('node_event_seq').select('seq'));
  return { seqs: events.map(({ seq }) => Number(seq)), counter: Number(counter?.seq ?? 0) };
}

/** How many dead letters the topics of transactions have. */
export async function deadLetters(kafka: Kafka, { env }: Portcullis): Promise<number> {
  const topics = [TOPICS.admin, TOPICS.user, TOPICS.registered].map(deadLetterTopicOf);
  const counts = await Promise.all(topics.map((topic) => endOf(kafka, `${env.TOPIC_PREFIX}${topic}`)));
  return counts.reduce((sum, count) => sum + count, 0);
}

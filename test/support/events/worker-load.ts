import { setTimeout } from 'node:timers/promises';
import { expect, inject } from 'vitest';
import { TOPICS } from '../../../src/events/bus/topics.ts';
import type { Portcullis } from '../harness.ts';
import {
  ADMIN_GROUP,
  changesOf,
  committed,
  deadLetters,
  kafkaOf,
  notify,
  registered,
  sequenceOf,
} from './worker-fixture.ts';

const SENDERS = inject('isThorough') ? 4 : 2;
/** Between two transactions of a sender. */
const PAUSE_MS = inject('isThorough') ? 20 : 200;
const PARTITIONS = 6;
const STATUSES = [1, 2, 3];
const CHANGES = ['null 1', '1 2', '2 3'];

/** What is sent to a gateway until it is to end. */
export interface Load {
  /** Waits until so many more transactions have been notified of. */
  more(count: number): Promise<void>;
  /** Gives the ids of all of them. */
  end(): Promise<string[]>;
}

/** Registers transactions and notifies each of its statuses, one after the other; every notification is accepted. */
export function load(gateway: Portcullis): Load {
  const ids: string[] = [];
  let isOver = false;
  const send = async () => {
    while (!isOver) {
      const id = await registered(gateway);
      ids.push(id);
      for (const status of STATUSES) expect(await notify(gateway, id, status)).toBe(200);
      await setTimeout(PAUSE_MS);
    }
  };
  const senders = Promise.all(Array.from({ length: SENDERS }, send));
  senders.catch(() => undefined);
  return {
    async more(count) {
      const from = ids.length;
      await expect.poll(() => ids.length).toBeGreaterThan(from + count);
    },
    async end() {
      isOver = true;
      await senders;
      return ids;
    },
  };
}

/**
 * Waits until the groups have committed all that a load has sent, and expects each change once: in the events of its
 * transaction, and in a sequence of the node without a gap.
 */
export async function expectAllOnce(gateway: Portcullis, ids: readonly string[]): Promise<void> {
  const kafka = kafkaOf(gateway);
  const { TOPIC_PREFIX: prefix } = gateway.env;
  const count = ids.length * STATUSES.length;
  const offsets = () => committed(kafka, `${prefix}${ADMIN_GROUP}`, `${prefix}${TOPICS.admin}`);
  await expect.poll(offsets, { interval: 250 }).toBe(count);
  for (const id of ids) expect(await changesOf(gateway, id)).toEqual(CHANGES);
  const { seqs, counter } = await sequenceOf(gateway);
  expect(seqs).toEqual(Array.from({ length: count }, (_, at) => at + 1));
  expect(counter).toBe(count);
  expect(await deadLetters(kafka, gateway)).toBe(0);
  const door = gateway.service.context.database.db.unscoped('test');
  expect(await door.run((k) => k.selectFrom('parked_notifications').select('id'))).toEqual([]);
}

/** Gives the topics of notifications more partitions than there are workers. */
export async function widenTopics(of: Portcullis): Promise<void> {
  const admin = kafkaOf(of).admin();
  await admin.connect();
  const topicPartitions = [TOPICS.admin, TOPICS.user].map((topic) => ({
    topic: `${of.env.TOPIC_PREFIX}${topic}`,
    count: PARTITIONS,
  }));
  await admin.createPartitions({ topicPartitions });
  await admin.disconnect();
}

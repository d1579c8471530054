import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { TOPICS } from '../../src/events/topics.ts';
import { type Portcullis, startOnRealServers } from '../harness.ts';
import { describeReal } from '../services/real.ts';
import {
  ADMIN_GROUP,
  changesOf,
  committed,
  deadLetters,
  kafkaOf,
  notify,
  registered,
  sequenceOf,
  untilMembers,
  workerHere,
  workerProcess,
} from './worker-stand.ts';

// Workers are processes, and the group gives one that was killed six seconds.
vi.setConfig({ testTimeout: 90_000, hookTimeout: 60_000 });

const SENDERS = 4;
const PARTITIONS = 6;
const STATUSES = [1, 2, 3];
const CHANGES = ['null 1', '1 2', '2 3'];

describeReal(['postgres', 'redis', 'kafka'], 'workers that share the partitions', () => {
  let gateway: Portcullis;
  beforeAll(async () => {
    gateway = await startOnRealServers({ env: { PORTCULLIS_ROLE: 'gateway' } });
    await widen(gateway);
  });
  afterAll(() => gateway?.[Symbol.asyncDispose]());

  /** Registers transactions and notifies each of its statuses, one after the other, until it is told to end. */
  function load() {
    const ids: string[] = [];
    let isOver = false;
    const send = async () => {
      while (!isOver) {
        const id = await registered(gateway);
        ids.push(id);
        for (const status of STATUSES) expect(await notify(gateway, id, status)).toBe(200);
        await setTimeout(20);
      }
    };
    const senders = Promise.all(Array.from({ length: SENDERS }, send));
    senders.catch(() => undefined);
    return {
      ids,
      /** Waits until so many more have been notified. */
      async more(count: number): Promise<void> {
        const from = ids.length;
        await expect.poll(() => ids.length, { timeout: 20_000 }).toBeGreaterThan(from + count);
      },
      async end(): Promise<string[]> {
        isOver = true;
        await senders;
        return ids;
      },
    };
  }

  it('D1-12 D6-17: three workers join, one is killed, one leaves and one comes: nothing is lost, nothing is double', async () => {
    const kafka = kafkaOf(gateway);
    const group = `${gateway.env.TOPIC_PREFIX}${ADMIN_GROUP}`;
    const sending = load();
    await using first = await workerProcess(gateway);
    await sending.more(10);
    await using _second = await workerProcess(gateway);
    const third = await workerHere(gateway);
    await untilMembers(kafka, group, 3);
    await sending.more(10);
    await first.kill('SIGKILL');
    await sending.more(10);
    await third[Symbol.asyncDispose]();
    await using _fourth = await workerHere(gateway);
    await untilMembers(kafka, group, 2);
    await sending.more(10);
    const ids = await sending.end();
    const topic = `${gateway.env.TOPIC_PREFIX}${TOPICS.admin}`;
    const count = ids.length * STATUSES.length;
    await expect.poll(() => committed(kafka, group, topic), { timeout: 20_000 }).toBe(count);
    for (const id of ids) expect(await changesOf(gateway, id)).toEqual(CHANGES);
    const { seqs, counter } = await sequenceOf(gateway);
    expect(seqs).toEqual(Array.from({ length: count }, (_, at) => at + 1));
    expect(counter).toBe(count);
    expect(await deadLetters(kafka, gateway)).toBe(0);
    expect(await parked(gateway)).toBe(0);
  });
});

/** More partitions of what is consumed than members of the group. */
async function widen(of: Portcullis): Promise<void> {
  const admin = kafkaOf(of).admin();
  await admin.connect();
  const topicPartitions = [TOPICS.admin, TOPICS.user].map((topic) => ({
    topic: `${of.env.TOPIC_PREFIX}${topic}`,
    count: PARTITIONS,
  }));
  await admin.createPartitions({ topicPartitions });
  await admin.disconnect();
}

async function parked({ service }: Portcullis): Promise<number> {
  const door = service.context.database.db.unscoped('test');
  return (await door.run((k) => k.selectFrom('parked_notifications').select('id'))).length;
}

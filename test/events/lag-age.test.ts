import fc from 'fast-check';
import { Kafka, logLevel } from 'kafkajs';
import { describe, expect, it } from 'vitest';
import { EmbeddedBus, EmbeddedLogReader } from '../../src/events/bus/embedded-bus.ts';
import { oldestSecondsOf } from '../../src/events/bus/kafka-admin.ts';
import { KafkaBus } from '../../src/events/bus/kafka-bus.ts';
import { CONSUMED, TOPICS } from '../../src/events/bus/topics.ts';
import { message } from '../support/events/recorder.ts';
import { realDatabase } from '../support/harness/databases.ts';
import { usePortcullis } from '../support/harness.ts';
import { createTopics, deleteTopics, kafkaConnection, topicPrefix } from '../support/services/isolation.ts';
import { describeReal, serviceAddress } from '../support/services/real.ts';

const quiet = () => undefined;
const DAY_S = 86_400;

describe('the age of the oldest message of a topic in Kafka', () => {
  it('D8-10: is found to 2 %, of messages of any age in any partition', async () => {
    const partition = fc.record({
      ages: fc
        .array(fc.integer({ min: 2, max: 30 * DAY_S }), { maxLength: 8 })
        .map((ages) => ages.sort((a, b) => b - a)),
      consumed: fc.nat(8),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(partition, { minLength: 1, maxLength: 4 }), async (partitions) => {
        const left = partitions.flatMap(({ ages, consumed }) => ages.slice(consumed));
        fc.pre(left.length > 0);
        const now = Date.now();
        let questions = 0;
        const admin = {
          async fetchTopicOffsetsByTimestamp(_topic: string, since = 0) {
            questions += 1;
            return partitions.map(({ ages }, at) => {
              const first = ages.findIndex((age) => now - age * 1_000 >= since);
              return { partition: at, offset: String(first < 0 ? ages.length : first) };
            });
          },
        };
        const from = partitions.map(({ consumed }, at) => ({ partition: at, first: BigInt(consumed) }));
        const age = await oldestSecondsOf(admin, 't', from);
        expect(age / Math.max(...left)).toBeGreaterThan(0.99);
        expect(age / Math.max(...left)).toBeLessThan(1.03);
        expect(questions).toBeLessThan(14);
      }),
    );
  });
});

describeReal('postgres', 'the lag of the embedded bus', () => {
  it('D8-10: has the age of the oldest message that a group has not consumed, and dead letters have one, too', async () => {
    await using database = await realDatabase();
    const bus = new EmbeddedBus(database.db, quiet);
    const subscription = await bus.subscribe({ groupId: 'g', topics: ['t'], handle: async () => undefined });
    await subscription.stop();
    await bus.publish([message('t', 'a'), message('t', 'b'), message('other', 'c')]);
    const age = "update bus_messages set created_at = now() - interval '300 seconds' where key = 'a'";
    await database.db.unscoped('test').raw((sql) => sql`${sql.raw(age)}`);
    const [lag] = await bus.lag(new Map([['g', ['t']]]));
    expect(lag).toMatchObject({ groupId: 'g', topic: 't', messages: 2 });
    expect(lag?.oldestSeconds).toBeGreaterThanOrEqual(300);
    expect(lag?.oldestSeconds).toBeLessThan(400);
    const reader = new EmbeddedLogReader(database.db);
    expect(await reader.oldestSeconds('t', await reader.spans('t', { after: new Map() }))).toBeGreaterThanOrEqual(300);
    expect(await reader.oldestSeconds('none', await reader.spans('none', { after: new Map() }))).toBe(0);
    await bus.stop();
  });
});

describeReal('kafka', 'the lag on Kafka', () => {
  it('D8-10: has the age of the oldest message that a group has not consumed', async () => {
    const [prefix, brokers] = [topicPrefix(), serviceAddress('kafka')];
    await createTopics(brokers, prefix, [TOPICS.admin]);
    const bus = new KafkaBus(kafkaConnection(prefix), quiet);
    const producer = new Kafka({ brokers: brokers.split(','), logLevel: logLevel.NOTHING }).producer();
    await producer.connect();
    const ago = (seconds: number) => ({ value: 'x', key: 'k', timestamp: String(Date.now() - seconds * 1_000) });
    await producer.send({ topic: prefix + TOPICS.admin, messages: [ago(600), ago(300)] });
    await producer.disconnect();
    const [lag] = await bus.lag(new Map([['portcullis.transactions.admin', [TOPICS.admin]]]));
    expect(lag).toMatchObject({ topic: TOPICS.admin, messages: 2 });
    expect(lag?.oldestSeconds).toBeGreaterThan(590);
    expect(lag?.oldestSeconds).toBeLessThan(660);
    await bus.stop();
    await deleteTopics(brokers, prefix);
  });
});

describe('the consumer groups of the product', () => {
  const p = usePortcullis();

  it('D8-10: are those whose lag the status shows', async () => {
    const lag = await p.service.context.bus.lag();
    const named = [...CONSUMED].flatMap(([group, topics]) => topics.map((topic) => `${group} ${topic}`));
    expect(lag.map(({ groupId, topic }) => `${groupId} ${topic}`).sort()).toEqual(named.sort());
  });
});

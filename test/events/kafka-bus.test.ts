import { randomUUID } from 'node:crypto';
import { Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import kafkajs from 'kafkajs';
import { beforeAll, describe, expect, inject, it, vi } from 'vitest';
import {
  deadLetterTopicOf,
  type IncomingMessage,
  PoisonError,
  withDeadLetters,
} from '../../src/events/bus/event-bus.ts';
import { KafkaBus } from '../../src/events/bus/kafka-bus.ts';
import type { KafkaConnection } from '../../src/events/bus/kafka-client.ts';
import { TOPICS } from '../../src/events/bus/topics.ts';
import { message, Recorder } from '../support/events/recorder.ts';
import { createTopics, kafkaConnection, topicPrefix } from '../support/services/isolation.ts';
import { freePorts } from '../support/services/ports.ts';
import { describeReal } from '../support/services/real.ts';
import { eventBusContract } from './event-bus.contract.ts';

const { CompressionCodecs, CompressionTypes, Kafka, logLevel } = kafkajs;
const SESSION_TIMEOUT_MS = 6_000;

/** With less partitions than those that a bus makes, which keep a broker busy. */
function makeTopics({ brokers, topicPrefix: prefix }: KafkaConnection, topics: string[]): Promise<void> {
  return createTopics(brokers.join(','), prefix, topics);
}

function busOn(connection: KafkaConnection): KafkaBus {
  return new KafkaBus(connection, () => undefined);
}

describeReal('kafka', 'the Kafka bus', () => {
  let connection: KafkaConnection;
  beforeAll(() => {
    connection = kafkaConnection(topicPrefix());
  });
  const open = () => busOn(connection);
  eventBusContract(() => ({ open, makeTopics: (topics) => makeTopics(connection, topics) }), inject('isThorough'));

  it('creates topics with 12 partitions and their retention, and reports missing ones', async () => {
    const bus = busOn(connection);
    const { kycToken: known } = TOPICS;
    const made = [known, deadLetterTopicOf(known), 'audit.seals'];
    expect(await bus.missingTopics(made)).toEqual(made);
    await bus.ensureTopics(made);
    expect(await bus.missingTopics([...made, 'other'])).toEqual(['other']);
    const days = (count: number) => String(count * 24 * 60 * 60 * 1_000);
    expect(await describeTopics(connection, made)).toEqual([
      { partitions: 12, retentionMs: days(7) },
      { partitions: 12, retentionMs: days(30) },
      { partitions: 12, retentionMs: '-1' },
    ]);
    await bus.stop();
  });

  it('D6-18: a message as long as a broker accepts becomes a dead letter, which is longer', async () => {
    const [bus, letters] = [busOn(connection), new Recorder()];
    const topic = 'longest';
    await bus.ensureTopics([topic, deadLetterTopicOf(topic)]);
    // Its record batch has 1,048,588 bytes: what a broker accepts by default.
    const longest = message(topic, 'k', { value: Buffer.alloc(1_048_515, 'x') });
    await expect(bus.publish([{ ...longest, value: Buffer.alloc(1_048_516) }])).rejects.toThrow();
    await bus.publish([longest]);
    const handle = withDeadLetters(bus, () => Promise.reject(new PoisonError('x'.repeat(2_000))));
    await bus.subscribe({ groupId: 'longest', topics: [topic], handle });
    await letters.follow(bus, deadLetterTopicOf(topic));
    await letters.count(1);
    expect(letters.messages[0]?.value).toEqual(longest.value);
    await bus.stop();
  });

  describe('messages that another producer has compressed', () => {
    /** Snappy of nothing but literals, in which a byte is the length and another its kind. */
    const snappy = async ({ buffer }: { buffer: Buffer }) =>
      Buffer.concat([Buffer.of(0x80 | (buffer.length & 0x7f), buffer.length >> 7, 60 << 2, buffer.length - 1), buffer]);

    it.each([
      ['Snappy', CompressionTypes.Snappy, (bus: KafkaBus, topic: string) => bus.ensureTopics([topic])],
      ['Zstandard', CompressionTypes.ZSTD, (bus: KafkaBus, topic: string) => bus.ensureTopics([topic])],
      ['Zstandard', CompressionTypes.ZSTD, (_: KafkaBus, topic: string) => makeTopics(connection, [topic])],
    ])('are read: %s, %#', async (name, compression, make) => {
      const [bus, recorder] = [busOn(connection), new Recorder()];
      const topic = `compressed-${randomUUID()}`;
      await make(bus, topic);
      const before = CompressionCodecs[CompressionTypes.Snappy];
      CompressionCodecs[CompressionTypes.Snappy] = () => ({
        compress: snappy,
        decompress: () => Promise.reject(new Error('no')),
      });
      const producer = new Kafka({ brokers: connection.brokers, logLevel: logLevel.NOTHING }).producer();
      await bus.checkHealth();
      await producer.connect();
      const messages = [{ key: 'k', value: name.repeat(8) }];
      await producer.send({ topic: connection.topicPrefix + topic, compression, messages });
      await producer.disconnect();
      CompressionCodecs[CompressionTypes.Snappy] = before;
      await recorder.follow(bus, topic);
      await recorder.count(1);
      expect(recorder.texts).toEqual([name.repeat(8)]);
      await bus.stop();
    });
  });

  it('a topic of another owner that has no leader hides no topic of the product, and no broker that responds', async () => {
    const bus = busOn(connection);
    const led = TOPICS.admin;
    await bus.ensureTopics([led]);
    const { KafkaJSProtocolError } = kafkajs;
    const { admin: adminOf } = Kafka.prototype;
    const asked: (readonly string[])[] = [];
    const spy = vi.spyOn(Kafka.prototype, 'admin').mockImplementation(function withOutsider(
      this: typeof Kafka.prototype,
    ) {
      const admin = adminOf.call(this);
      const { fetchTopicMetadata } = admin;
      const refuse = () =>
        Promise.reject(
          new KafkaJSProtocolError(Object.assign(new Error('no leader'), { type: 'LEADER_NOT_AVAILABLE' })),
        );
      admin.describeCluster = refuse;
      admin.fetchTopicMetadata = async (options) => {
        asked.push(options?.topics ?? []);
        return options?.topics ? fetchTopicMetadata(options) : refuse();
      };
      return admin;
    });
    const other = busOn(connection);
    expect(await other.missingTopics([led, 'other'])).toEqual(['other']);
    expect(asked[0]).toEqual([]);
    await other.checkHealth();
    spy.mockRestore();
    await Promise.all([bus.stop(), other.stop()]);
  });

  it('7.3-01: a healthy bus is connected: its first message opens no connection', async () => {
    const bus = busOn(connection);
    await bus.ensureTopics(['first']);
    await bus.checkHealth();
    const connecting = vi.spyOn(Socket.prototype, 'connect');
    await bus.publish([message('first', 'k')]);
    expect(connecting).not.toHaveBeenCalled();
    connecting.mockRestore();
    await bus.stop();
  });

  it('an oversized message is rejected alone, and other messages of its batch are acknowledged', async () => {
    const [bus, recorder] = [busOn(connection), new Recorder()];
    await bus.ensureTopics(['sizes']);
    const calls = [Buffer.from('a'), Buffer.alloc(1024 * 1024 + 1), Buffer.from('b')].map((value, index) =>
      bus.publish([message('sizes', String(index), { value })]),
    );
    const results = await Promise.allSettled([...calls, bus.publish([message('no-such-topic', 'x')])]);
    expect(results.map((result) => result.status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'rejected']);
    await recorder.follow(bus, 'sizes');
    await recorder.count(2);
    expect(recorder.keys.sort()).toEqual(['0', '2']);
    await bus.stop();
  });

  it('64 messages of 20 KB for one partition, more than a broker accepts at once, are sent in batches that fit', async () => {
    const complaints: string[] = [];
    const bus = new KafkaBus(connection, (level, text) => void complaints.push(`${level} ${text}`));
    const recorder = new Recorder();
    await bus.ensureTopics(['heavy']);
    complaints.splice(0);
    const calls = Array.from({ length: 64 }, (_, index) => {
      const value = Buffer.alloc(20_000, 'x');
      return bus.publish([message('heavy', 'one key', { value, headers: { at: String(index) } })]);
    });
    await Promise.all(calls);
    // Nothing was refused and sent once more: that would be told.
    expect(complaints).toEqual([]);
    await recorder.follow(bus, 'heavy');
    await recorder.count(64);
    expect(recorder.messages.map(({ headers }) => Number(headers.at))).toEqual(calls.map((_, index) => index));
    await bus.stop();
  });

  it('two members of a group share its partitions, and one takes over when the other stops', async () => {
    const [one, two] = [busOn(connection), busOn(connection)];
    const [first, second] = [new Recorder(), new Recorder()];
    const keys = Array.from({ length: 100 }, (_, index) => String(index));
    await one.ensureTopics(['members']);
    await first.follow(one, 'members', 'sharing');
    await second.follow(two, 'members', 'sharing');
    await one.publish(keys.map((key) => message('members', key)));
    const seen = () => new Set([...first.keys, ...second.keys]).size;
    await expect.poll(seen).toBe(100);
    await one.stop();
    await two.publish(keys.map((key) => message('members', `${key}-again`)));
    await expect.poll(seen).toBe(200);
    await two.stop();
  });

  it('a handler that runs longer than the session timeout keeps its partitions, and nothing is delivered twice', async () => {
    const [bus, recorder] = [busOn(connection), new Recorder()];
    await bus.ensureTopics(['slow']);
    const handle = async (batch: IncomingMessage[]) => {
      if (recorder.messages.length === 0) await setTimeout(SESSION_TIMEOUT_MS + 1_000);
      await recorder.handle(batch);
    };
    await bus.subscribe({ groupId: 'slow', topics: ['slow'], handle });
    await bus.publish([message('slow', 'k', { value: Buffer.from('1') })]);
    await recorder.count(1);
    await bus.publish([message('slow', 'k', { value: Buffer.from('2') })]);
    await recorder.count(2);
    expect(recorder.texts).toEqual(['1', '2']);
    await bus.stop();
  });

  it('a full queue rejects at once, and accepts messages again when it has drained', async () => {
    const bus = busOn(kafkaConnection(topicPrefix(), `127.0.0.1:${(await freePorts(1))[0]}`));
    const megabyte = Buffer.alloc(1024 * 1024);
    const queued = Array.from({ length: 63 }, () =>
      expect(bus.publish([message('t', 'k', { value: megabyte })], { deadlineMs: 500 })).rejects.toThrow('in time'),
    );
    await expect(bus.publish([message('t', 'k', { value: megabyte })])).rejects.toThrow('the queue is full');
    await Promise.all(queued);
    const many = Array.from({ length: 10_001 }, () => message('t', 'k'));
    await expect(bus.publish(many)).rejects.toThrow('the queue is full');
    await expect
      .poll(() => reason(bus.publish([message('t', 'k', { value: megabyte })], { deadlineMs: 100 })))
      .toContain('in time');
    await bus.stop();
  });
});

function reason(promise: Promise<void>): Promise<string> {
  return promise.then(
    () => '',
    (error: unknown) => String(error),
  );
}

async function describeTopics({ brokers, topicPrefix: prefix }: KafkaConnection, topics: string[]) {
  const { ConfigResourceTypes } = kafkajs;
  const admin = new Kafka({ brokers, logLevel: logLevel.NOTHING }).admin();
  await admin.connect();
  const names = topics.map((topic) => prefix + topic);
  const metadata = await admin.fetchTopicMetadata({ topics: names });
  const { resources } = await admin.describeConfigs({
    includeSynonyms: false,
    resources: names.map((name) => ({ type: ConfigResourceTypes.TOPIC, name, configNames: ['retention.ms'] })),
  });
  await admin.disconnect();
  return names.map((name) => ({
    partitions: metadata.topics.find((topic) => topic.name === name)?.partitions.length,
    retentionMs: resources.find((resource) => resource.resourceName === name)?.configEntries[0]?.configValue,
  }));
}

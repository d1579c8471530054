import { describe, expect, it, onTestFinished } from 'vitest';
import { EmbeddedBus } from '../../src/events/bus/embedded-bus.ts';
import { deadLetterTopicOf, type EventBus } from '../../src/events/bus/event-bus.ts';
import { KafkaBus } from '../../src/events/bus/kafka-bus.ts';
import { TOPICS } from '../../src/events/bus/topics.ts';
import { startTransactionConsumers } from '../../src/features/transactions/transaction-messages.service.ts';
import { message, Recorder } from '../support/events/recorder.ts';
import { realDatabase, scratchDatabase } from '../support/harness/databases.ts';
import { createTopics, deleteTopics, kafkaConnection, topicPrefix } from '../support/services/isolation.ts';
import { describeReal, serviceAddress } from '../support/services/real.ts';
import { delivery, eventsOf, type Fixture, fixtureOn, rowOf, transactionOf } from '../support/transactions/fixture.ts';

describe('malformed messages on the embedded bus', () => {
  it('D6-18: messages after a malformed one are applied, and its dead letter can be read', async () => {
    const fixture = await fixtureOn(await scratchDatabase());
    await poisonOnBus(fixture, new EmbeddedBus(fixture.db, () => undefined));
  });
});

describeReal(['postgres', 'kafka'], 'poison on Kafka', () => {
  it('D6-18: messages after a malformed one are applied, and its dead letter can be read', async () => {
    const [brokers, prefix] = [serviceAddress('kafka'), topicPrefix()];
    const topics = [TOPICS.admin, TOPICS.user, TOPICS.registered];
    await createTopics(brokers, prefix, [...topics, ...topics.map(deadLetterTopicOf)]);
    onTestFinished(() => deleteTopics(brokers, prefix));
    await poisonOnBus(await fixtureOn(await realDatabase()), new KafkaBus(kafkaConnection(prefix), () => undefined));
  });
});

/** Poison between two notifications of one id, so of one partition, and the consumers as they run. */
async function poisonOnBus(fixture: Fixture, bus: EventBus): Promise<void> {
  const subscriptions = await startTransactionConsumers({ bus, transactions: fixture.mirror });
  onTestFinished(async () => {
    await Promise.all(subscriptions.map((subscription) => subscription.stop()));
    await bus.stop();
    await fixture.database[Symbol.asyncDispose]();
  });
  const dead = new Recorder();
  await dead.follow(bus, `${TOPICS.admin}.dlq`);
  const transaction = transactionOf(fixture);
  await fixture.mirror.registerByOwner(transaction);
  const { id } = transaction;
  const [before, after] = [1, 3].map((status) => Buffer.from(delivery({ id, status, second: status }).body));
  const headers = { 'event-id': 'e', 'correlation-id': 'c' };
  for (const value of [before, Buffer.from('?'), after]) {
    await bus.publish([message(TOPICS.admin, id, { value: value ?? null, headers })]);
  }
  await expect.poll(() => rowOf(fixture, id)).toMatchObject({ status: 3 });
  await dead.count(1);
  expect(dead.messages).toMatchObject([{ key: id, value: Buffer.from('?') }]);
  expect(dead.messages[0]?.headers).toEqual({
    ...headers,
    error: expect.stringMatching(/^PoisonError: ./),
    'original-topic': TOPICS.admin,
    'original-partition': expect.stringMatching(/^\d+$/),
    'original-offset': expect.stringMatching(/^\d+$/),
  });
  expect((await eventsOf(fixture, id)).map(({ status }) => status)).toEqual([1, 3]);
}

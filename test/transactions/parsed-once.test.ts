import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { EmbeddedBus } from '../../src/events/bus/embedded-bus.ts';
import { deadLetterTopicOf, type EventBus } from '../../src/events/bus/event-bus.ts';
import { KafkaBus } from '../../src/events/bus/kafka-bus.ts';
import { TOPICS } from '../../src/events/bus/topics.ts';
import { notificationInput, parseDelivery } from '../../src/features/transactions/notification.input.ts';
import { startTransactionConsumers } from '../../src/features/transactions/transaction-messages.service.ts';
import { message } from '../support/events/recorder.ts';
import { realDatabase, scratchDatabase } from '../support/harness/databases.ts';
import { startPortcullis } from '../support/harness.ts';
import { createTopics, deleteTopics, kafkaConnection, topicPrefix } from '../support/services/isolation.ts';
import { describeReal, serviceAddress } from '../support/services/real.ts';
import { delivery, type Fixture, fixtureOn, rowOf, transactionOf } from '../support/transactions/fixture.ts';
import { basic, notification, PATHS } from '../support/webhook/fixture.ts';

const GROUPS = new Map([TOPICS.admin, TOPICS.user].map((topic) => [`portcullis.${topic}`, [topic]]));

/** Returns how often the notification of an id has been parsed since the call. */
function parsesOf(id: string): () => number {
  const parse = vi.spyOn(notificationInput, 'safeParse');
  onTestFinished(() => parse.mockRestore());
  return () => parse.mock.calls.filter(([value]) => (value as { id?: unknown } | undefined)?.id === id).length;
}

/** Resolves when the consumers of both topics have committed all that is in them. */
async function consumed(bus: Pick<EventBus, 'lag'>): Promise<void> {
  await expect
    .poll(async () => (await bus.lag?.(GROUPS))?.map(({ messages }) => messages), { timeout: 30_000 })
    .toEqual([0, 0]);
}

it('6-01: a process that receives a notification and consumes both topics parses it once', async () => {
  await using portcullis = await startPortcullis();
  const { username, password } = portcullis.webhook;
  const told = notification();
  const parses = parsesOf(told.id);
  const headers = { authorization: basic(username, password), 'content-type': 'application/json' };
  expect((await portcullis.call('POST', PATHS[0], { body: JSON.stringify(told), headers })).status).toBe(200);
  await consumed(portcullis.service.context.bus);
  expect(parses()).toBe(1);
});

describe('a worker', () => {
  it('6-01: parses a notification once for the consumers of both topics, from the embedded bus', async () => {
    const fixture = await fixtureOn(await scratchDatabase());
    await consumeTwice(fixture, new EmbeddedBus(fixture.db, () => undefined));
  });
});

describeReal(['postgres', 'kafka'], 'a worker with Kafka', () => {
  it('6-01: parses a notification once for the consumers of both topics', async () => {
    const [brokers, prefix] = [serviceAddress('kafka'), topicPrefix()];
    const topics = [TOPICS.admin, TOPICS.user, TOPICS.registered];
    await createTopics(brokers, prefix, [...topics, ...topics.map(deadLetterTopicOf)]);
    onTestFinished(() => deleteTopics(brokers, prefix));
    await consumeTwice(await fixtureOn(await realDatabase()), new KafkaBus(kafkaConnection(prefix), () => undefined));
  });
});

async function consumeTwice(fixture: Fixture, bus: EventBus): Promise<void> {
  const subscriptions = await startTransactionConsumers({ bus, transactions: fixture.mirror });
  onTestFinished(async () => {
    await Promise.all(subscriptions.map((subscription) => subscription.stop()));
    await bus.stop();
    await fixture.database[Symbol.asyncDispose]();
  });
  const transaction = transactionOf(fixture);
  await fixture.mirror.registerByOwner(transaction);
  const { id } = transaction;
  const parses = parsesOf(id);
  const value = Buffer.from(delivery({ id, status: 3 }).body);
  await bus.publish([TOPICS.admin, TOPICS.user].map((topic) => message(topic, id, { value })));
  await expect.poll(() => rowOf(fixture, id), { timeout: 30_000 }).toMatchObject({ status: 3 });
  await consumed(bus);
  expect(parses()).toBe(1);
}

describe('parseDelivery', () => {
  it('6-01: parses other bytes of the same id, and what is no notification, each time anew', () => {
    const { body } = delivery({ id: 'x', status: 1 });
    const spaced = Buffer.concat([body, Buffer.from(' ')]);
    const parses = parsesOf('x');
    expect(
      [body, spaced, body].map((bytes) => parseDelivery({ body: bytes, correlationId: '' }).notification.id),
    ).toEqual(['x', 'x', 'x']);
    expect(parses()).toBe(2);
    const poison = { body: Buffer.from('{"id":"x"}'), correlationId: '' };
    for (let time = 0; time < 2; time += 1) expect(() => parseDelivery(poison)).toThrow('not a notification');
    expect(parses()).toBe(4);
  });

  it('6-01: forgets the least recent notifications beyond four megabytes', () => {
    const bodyOf = (index: number) => delivery({ id: `many-${index}`, status: 1, error: 'e'.repeat(200_000) }).body;
    const first = bodyOf(0);
    const parses = parsesOf('many-0');
    for (let index = 0; index < 30; index += 1) parseDelivery({ body: bodyOf(index), correlationId: '' });
    parseDelivery({ body: first, correlationId: '' });
    expect(parses()).toBe(2);
  });
});

import { createRequire } from 'node:module';
import { KafkaJSNonRetriableError } from 'kafkajs';
import { describe, expect, inject, it, vi } from 'vitest';
import { EmbeddedBus, EmbeddedLogReader } from '../../src/events/bus/embedded-bus.ts';
import { KafkaBus } from '../../src/events/bus/kafka-bus.ts';
import { KafkaLogReader } from '../../src/events/bus/kafka-log-reader.ts';
import { Replay, ReplayPositions } from '../../src/events/bus/replay.ts';
import type { Database } from '../../src/platform/database/open-database.ts';
import { message, Recorder } from '../support/events/recorder.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { embeddedDatabase, realDatabase, scratchDatabase } from '../support/harness/databases.ts';
import { kafkaConnection, topicPrefix } from '../support/services/isolation.ts';
import { describeReal } from '../support/services/real.ts';
import { replayContract } from './replay.contract.ts';

const require = createRequire(import.meta.url);
/** How kafkajs makes a consumer a member of its group. */
const ConsumerGroup = require('kafkajs/src/consumer/consumerGroup');
const { createErrorFromCode } = require('kafkajs/src/protocol/error');
const GROUP_LOAD_IN_PROGRESS = 14;
const quiet = () => undefined;

describe('replay on the embedded bus', () => {
  // In a quick run on PostgreSQL, which is soon made.
  const database = beforeTests<Database>(inject('isThorough') ? embeddedDatabase : scratchDatabase);

  const embedded = () => ({
    open: () => new EmbeddedBus(database.db, quiet),
    reader: new EmbeddedLogReader(database.db),
    positions: new ReplayPositions(database.db, ''),
  });
  replayContract(embedded, inject('isThorough'));

  it('D6-18: dead letters that were never replayed are still removed after their retention', async () => {
    const bus = new EmbeddedBus(database.db, quiet);
    const positions = new ReplayPositions(database.db, '');
    const replay = new Replay({ bus, reader: new EmbeddedLogReader(database.db), positions });
    const door = database.db.unscoped('test');
    const run = async () => {
      const plan = await replay.deadLetters('aging');
      await replay.run(plan, { signal: new AbortController().signal, onReplayed: quiet });
      return plan.count;
    };
    await bus.publish([message('aging.dlq', 'replayed')]);
    expect(await run()).toBe(1);
    await bus.publish([message('aging.dlq', 'forgotten')]);
    await door.raw((text) => text`update bus_messages set created_at = now() - interval '31 days'`);
    await bus.publish([message('aging.dlq', 'young')]);
    await bus.removeRead();
    expect(await run()).toBe(1);
    await bus.stop();
  });
});

describeReal(['kafka', 'postgres'], 'replay on Kafka', () => {
  const prefix = topicPrefix();
  const database = beforeTests(realDatabase);
  const connection = () => kafkaConnection(prefix);
  const fixture = () => ({
    open: () => new KafkaBus(connection(), quiet),
    reader: new KafkaLogReader(connection(), quiet),
    positions: new ReplayPositions(database.db, prefix),
  });

  replayContract(fixture, inject('isThorough'));

  /** A replay of a topic that has dead letters of these keys. */
  async function replayOf(topic: string, keys: readonly string[]) {
    const { open, reader, positions } = fixture();
    const bus = open();
    await bus.ensureTopics([topic, `${topic}.dlq`]);
    await bus.publish(keys.map((key) => message(`${topic}.dlq`, key)));
    return { bus, positions, replay: new Replay({ bus, reader, positions }) };
  }

  it('D6-18: a recreated topic is replayed from its start', async () => {
    const { bus, positions, replay } = await replayOf('anew', ['a', 'b', 'c']);
    for (let partition = 0; partition < 12; partition += 1) await positions.save('anew.dlq', partition, '1000');
    const plan = await replay.deadLetters('anew');
    expect(plan.count).toBe(3);
    await replay.run(plan, { signal: new AbortController().signal, onReplayed: quiet });
    expect((await replay.deadLetters('anew')).count).toBe(0);
    await bus.stop();
  });

  it('D6-18: a consumer that is rejected when it joins reports why, and nothing counts as replayed', async () => {
    const { bus, replay } = await replayOf('refused', ['a']);
    const plan = await replay.deadLetters('refused');
    using join = vi.spyOn(ConsumerGroup.prototype, 'joinAndSync');
    join.mockRejectedValue(new KafkaJSNonRetriableError('this client may not join'));
    const run = replay.run(plan, { signal: new AbortController().signal, onReplayed: quiet });
    await expect(run).rejects.toThrow('this client may not join');
    expect((await replay.deadLetters('refused')).count).toBe(1);
    await bus.stop();
  });

  it('D6-18: a consumer joins once its broker has loaded its groups', async () => {
    const { bus, replay } = await replayOf('early', ['a']);
    const plan = await replay.deadLetters('early');
    using join = vi.spyOn(ConsumerGroup.prototype, 'joinAndSync');
    join.mockRejectedValueOnce(createErrorFromCode(GROUP_LOAD_IN_PROGRESS));
    await replay.run(plan, { signal: new AbortController().signal, onReplayed: quiet });
    expect(join).toHaveBeenCalledTimes(2);
    expect((await replay.deadLetters('early')).count).toBe(0);
    await bus.stop();
  });

  it('D6-18: messages of one key keep their order, and large ones are not rejected together', async () => {
    const { open, reader, positions } = fixture();
    const [bus, recorder] = [open(), new Recorder()];
    await bus.ensureTopics(['ordered', 'ordered.dlq']);
    const values = Array.from({ length: 20 }, (_, index) => Buffer.alloc(200 * 1024, String(index % 10)));
    for (const value of values) await bus.publish([message('ordered.dlq', 'k', { value })]);
    const replay = new Replay({ bus, reader, positions });
    const plan = await replay.deadLetters('ordered');
    await replay.run(plan, { signal: new AbortController().signal, onReplayed: quiet });
    await recorder.follow(bus, 'ordered');
    await recorder.count(20);
    expect(recorder.texts.map((text) => text[0])).toEqual(values.map((value) => value.toString()[0]));
    await bus.stop();
  });
});

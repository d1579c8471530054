import { randomUUID } from 'node:crypto';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { EmbeddedBus, EmbeddedLogReader } from '../../src/events/bus/embedded-bus.ts';
import type { EventBus, LogReader } from '../../src/events/bus/event-bus.ts';
import { KafkaBus } from '../../src/events/bus/kafka-bus.ts';
import { KafkaLogReader } from '../../src/events/bus/kafka-log-reader.ts';
import { Replay, ReplayPositions } from '../../src/events/bus/replay.ts';
import { REFERENCE_TOPICS } from '../../src/events/bus/topics.ts';
import { lateReferenceHandler, startReferenceConsumers } from '../../src/features/reference/reference.consumers.ts';
import { Reference } from '../../src/features/reference/reference.service.ts';
import type { Database } from '../../src/platform/database/open-database.ts';
import { message, Recorder } from '../support/events/recorder.ts';
import { embeddedDatabase, realDatabase, scratchDatabase } from '../support/harness/databases.ts';
import { fixtureOn, rowOf } from '../support/reference/fixture.ts';
import { createTopics, deleteTopics, kafkaConnection, topicPrefix } from '../support/services/isolation.ts';
import { describeReal, serviceAddress } from '../support/services/real.ts';
import { watchedDb } from '../support/transactions/watched-db.ts';

const TOPIC = 'reference.chains';
const DEAD = 'reference.chains.dlq';
const quiet = () => undefined;

/** Where the messages are. */
interface Carrier {
  bus: EventBus;
  reader: LogReader;
  clean(): Promise<void>;
}

/** A consumer over a database that refuses every value until it is mended, and a replay beside it. */
async function consuming(openDatabase: () => Promise<Database>, carry: (database: Database) => Promise<Carrier>) {
  const fixture = fixtureOn(await openDatabase());
  const { bus, reader, clean } = await carry(fixture.database);
  const state = { isBroken: true };
  const statement = () => {
    if (state.isBroken) throw Object.assign(new Error('a value too long'), { code: '22001' });
  };
  const broken = new Reference({ db: watchedDb(fixture.db, { statement }), nowMs: Date.now });
  await startReferenceConsumers({ bus, reference: broken });
  const [dead, alive] = [new Recorder(), new Recorder()];
  await dead.follow(bus, DEAD);
  await alive.follow(bus, TOPIC);
  onTestFinished(async () => {
    await bus.stop();
    await clean();
    await fixture.database[Symbol.asyncDispose]();
  });
  const handler = lateReferenceHandler({ bus, reference: fixture.reference });
  const positions = new ReplayPositions(fixture.db, '');
  const replay = new Replay({ bus, reader, positions, applying: () => handler });
  const replayAll = async (): Promise<number> => {
    const plan = await replay.deadLetters(TOPIC);
    await replay.run(plan, { signal: new AbortController().signal, onReplayed: quiet });
    return plan.count;
  };
  /** Publishes rows, each a version of a chain with a name, or tombstones. */
  const publish = (...rows: [id: string, version: number, name: string | null][]) =>
    bus.publish(
      rows.map(([id, version, name]) =>
        message(TOPIC, id, { value: name === null ? null : Buffer.from(JSON.stringify({ name, version })) }),
      ),
    );
  const nameOf = async (id: string) => (await rowOf(fixture, 'chains', id))?.name;
  /** Waits until what was published before has been taken, and is no dead letter. */
  const taken = async () => {
    // Every partition has one: whatever was in front of it has been applied.
    const ids = Array.from({ length: 24 }, () => randomUUID());
    await publish(...ids.map((id): [string, number, string] => [id, 1, 'last']));
    for (const id of ids) await expect.poll(() => nameOf(id)).toBe('last');
  };
  return { state, dead, alive, replayAll, publish, nameOf, taken };
}

function deadLetterContract(
  openDatabase: () => Promise<Database>,
  carry: (database: Database) => Promise<Carrier>,
): void {
  it('D1-10 D6-18: dead rows are applied by a replay after the fix, and nothing is published to their topic', async () => {
    const { state, dead, alive, replayAll, publish, nameOf } = await consuming(openDatabase, carry);
    const [one, two] = [randomUUID(), randomUUID()];
    await publish([one, 1, 'old'], [one, 2, 'new'], [two, 1, 'other']);
    await Promise.all([dead.count(3), alive.count(3)]);
    state.isBroken = false;
    expect(await replayAll()).toBe(3);
    expect([await nameOf(one), await nameOf(two)]).toEqual(['new', 'other']);
    expect(await replayAll()).toBe(0);
    // A compacted topic keeps the last message of each key: an old row behind a newer one would be the one that stays.
    await publish([two, 2, 'later']);
    await alive.count(4);
    expect(alive.messages.every(({ headers }) => headers['replayed-from'] === undefined)).toBe(true);
    expect(alive.messages).toHaveLength(4);
  });

  it('D1-10: a replay of dead rows does not override a higher version or a later tombstone', async () => {
    const { state, dead, replayAll, publish, nameOf, taken } = await consuming(openDatabase, carry);
    const [outranked, deleted, reborn] = [randomUUID(), randomUUID(), randomUUID()];
    await publish([outranked, 3, 'dead'], [deleted, 3, 'dead'], [reborn, 3, 'dead']);
    await dead.count(3);
    state.isBroken = false;
    await publish([outranked, 7, 'newer'], [deleted, 0, null], [reborn, 0, null], [reborn, 8, 'again']);
    await taken();
    expect(await replayAll()).toBe(3);
    expect([await nameOf(outranked), await nameOf(deleted), await nameOf(reborn)]).toEqual([
      'newer',
      undefined,
      'again',
    ]);
    expect(dead.messages).toHaveLength(3);
  });

  it('D1-10 D6-18: a replayed tombstone deletes no later row: it is dead-lettered again, as is a message still invalid', async () => {
    const { state, dead, replayAll, publish, nameOf, taken } = await consuming(openDatabase, carry);
    const id = randomUUID();
    await publish([id, 0, null], ['no id', 1, 'poison']);
    await dead.count(2);
    state.isBroken = false;
    await publish([id, 1, 'came after it']);
    await taken();
    expect(await replayAll()).toBe(2);
    await dead.count(4);
    expect(await nameOf(id)).toBe('came after it');
    const [first, again] = dead.messages.filter(({ key }) => key === id);
    const { error: _error, ...origin } = first?.headers ?? {};
    expect(again?.headers).toEqual({
      ...origin,
      error: 'UnfitReferenceError: a late tombstone could delete newer rows',
      'replayed-from': `${DEAD}/${first?.partition}/${first?.offset}`,
    });
  });
}

describe('dead letters of reference data on the embedded bus', () =>
  // In a quick run on PostgreSQL, which is soon made.
  deadLetterContract(inject('isThorough') ? embeddedDatabase : scratchDatabase, async ({ db }) => ({
    bus: new EmbeddedBus(db, quiet),
    reader: new EmbeddedLogReader(db),
    clean: async () => undefined,
  })));

describeReal(['postgres', 'kafka'], 'dead letters of reference data on Kafka', () =>
  deadLetterContract(realDatabase, async () => {
    const [brokers, prefix] = [serviceAddress('kafka'), topicPrefix()];
    await createTopics(brokers, prefix, [...REFERENCE_TOPICS, DEAD]);
    const connection = kafkaConnection(prefix);
    return {
      bus: new KafkaBus(connection, quiet),
      reader: new KafkaLogReader(connection, quiet),
      clean: () => deleteTopics(brokers, prefix),
    };
  }),
);

import { userInfo } from 'node:os';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { EmbeddedBus } from '../../src/events/bus/embedded-bus.ts';
import type { OutgoingMessage } from '../../src/events/bus/event-bus.ts';
import { KafkaBus } from '../../src/events/bus/kafka-bus.ts';
import { ALL_TOPICS } from '../../src/events/bus/topics.ts';
import { embeddedClusterDir } from '../../src/platform/config/secrets.ts';
import { openDatabase } from '../../src/platform/database/open-database.ts';
import { portcullis } from '../support/cli/in-process.ts';
import { message, Recorder } from '../support/events/recorder.ts';
import { type RealDatabase, realDatabase } from '../support/harness/databases.ts';
import { embeddedToo } from '../support/harness/in-turn.ts';
import { temporaryFolder } from '../support/services/folders.ts';
import { createTopics, deleteTopics, kafkaConnection, topicPrefix } from '../support/services/isolation.ts';
import { describeReal, serviceAddress } from '../support/services/real.ts';
import { migratedFolder } from '../support/start/folders.ts';

const DEAD = 'transactions.user.dlq';

/** Where a command works: its variables, its database, and a bus beside it. */
interface Place {
  env: NodeJS.ProcessEnv;
  database: RealDatabase;
  bus: EmbeddedBus | KafkaBus;
}

function dead(key: string, value: string, more: Record<string, string> = {}): OutgoingMessage {
  const headers = { error: `PoisonError: ${key}`, 'original-topic': 'transactions.user', ...more };
  return message(DEAD, key, { value: Buffer.from(value), headers });
}

async function letters(env: NodeJS.ProcessEnv): Promise<Record<string, string>> {
  const { code, out, err } = await portcullis(['dead-letters', 'list', '--topic', 'transactions.user', '--json'], env);
  expect({ code, err }).toEqual({ code: 0, err: '' });
  const rows: { key: string; id: string }[] = JSON.parse(out).dead_letters;
  return Object.fromEntries(rows.map(({ key, id }) => [key, id]));
}

function deadLetterContract(place: () => Place): void {
  it('D8-12: are listed, shown with secrets masked, replayed and discarded, each decision with a record', async () => {
    const { env, database, bus } = place();
    await bus.publish([
      dead('d-1', '{"id":"d-1","password":"hunter2"}', { authorization: 'Bearer x' }),
      dead('d-2', '{"id":"d-2"}'),
      dead('d-3', '{"id":"d-3"}'),
    ]);
    const ids = await letters(env);
    expect(Object.keys(ids).sort()).toEqual(['d-1', 'd-2', 'd-3']);
    expect(ids['d-1']).toMatch(/^transactions\.user\.dlq-\d+-\d+$/);

    const shown = await portcullis(['dead-letters', 'show', ids['d-1'] ?? '', '--json'], env);
    expect(JSON.parse(shown.out)).toMatchObject({
      ...{ id: ids['d-1'], key: 'd-1', topic: 'transactions.user', state: 'waiting', error: 'PoisonError: d-1' },
      ...{ value: '{"id":"d-1","password":"***"}', headers: { authorization: '***' } },
    });
    expect((await portcullis(['dead-letters', 'show', ids['d-1'] ?? ''], env)).out).not.toMatch(/hunter2|Bearer/);

    const discard = ['dead-letters', 'discard', ids['d-2'] ?? '', '--reason', 'sent by a test'];
    expect(await portcullis(discard, env)).toEqual({ code: 0, err: '', out: `${ids['d-2']} is discarded.\n` });
    expect(Object.keys(await letters(env)).sort()).toEqual(['d-1', 'd-3']);
    expect(await portcullis(discard, env)).toMatchObject({ code: 1, err: expect.stringContaining('was discarded') });
    const decided = await portcullis(['dead-letters', 'show', ids['d-2'] ?? '', '--json'], env);
    expect(JSON.parse(decided.out)).toMatchObject({
      ...{ state: 'discarded', reason: 'sent by a test', decided_by: userInfo().username },
    });

    const replay = ['dead-letters', 'replay', ids['d-3'] ?? ''];
    expect(await portcullis(replay, env)).toEqual({ code: 0, err: '', out: `${ids['d-3']} is replayed.\n` });
    expect(await portcullis(replay, env)).toMatchObject({ code: 1, err: expect.stringContaining('was replayed') });
    expect(Object.keys(await letters(env))).toEqual(['d-1']);

    // The one that is left, and neither of those that were decided about.
    const all = await portcullis(['transactions', 'replay', '--dlq', '--topic', 'transactions.user', '--json'], env);
    expect(JSON.parse(all.out)).toMatchObject({ replayed: 1 });
    expect(await letters(env)).toEqual({});
    const recorder = new Recorder();
    await recorder.follow(bus, 'transactions.user');
    await recorder.count(2);
    expect(recorder.keys.sort()).toEqual(['d-1', 'd-3']);

    const records = await database.db
      .unscoped('test')
      .run((k) =>
        k
          .selectFrom('audit_records')
          .select(['path', 'subject', 'request_body', 'chain_id'])
          .where('method', '=', 'CLI')
          .orderBy('position'),
      );
    expect(records).toEqual(
      [
        ['dead-letters discard', { id: ids['d-2'], reason: 'sent by a test' }],
        ['dead-letters replay', { id: ids['d-3'] }],
        ['transactions replay', { topics: ['transactions.user'] }],
      ].map(([path, given]) => ({
        ...{ path, subject: userInfo().username, request_body: JSON.stringify(given), chain_id: expect.any(String) },
      })),
    );
    expect(await portcullis(['audit', 'verify'], env)).toMatchObject({ code: 0 });
  });

  it('D8-12: a letter decided about between two that wait is passed by, whatever the order of the decisions', async () => {
    const { env, bus } = place();
    await bus.publish(['e-1', 'e-2', 'e-3', 'e-4'].map((key) => dead(key, '{}')));
    const ids = await letters(env);
    for (const key of ['e-3', 'e-1']) {
      await portcullis(['dead-letters', 'discard', ids[key] ?? '', '--reason', 'x'], env);
    }
    expect(Object.keys(await letters(env)).sort()).toEqual(['e-2', 'e-4']);
    const all = await portcullis(['transactions', 'replay', '--dlq', '--topic', 'transactions.user', '--json'], env);
    expect(JSON.parse(all.out)).toMatchObject({ replayed: 2 });
  });

  it('D8-12: an id of no dead letter, or of one that no topic keeps, is refused', async () => {
    const { env } = place();
    for (const id of ['transactions.user-0-1', 'x', `${DEAD}-0`, 'users.kyc-token.dlq-0-1', `${DEAD}--1-2`]) {
      expect(await portcullis(['dead-letters', 'show', id], env)).toMatchObject({ code: 2 });
    }
    const absent = await portcullis(['dead-letters', 'discard', `${DEAD}-0-999999`, '--reason', 'x'], env);
    expect(absent).toMatchObject({ code: 1, err: expect.stringContaining('there is no dead letter') });
    expect(await portcullis(['dead-letters', 'discard', `${DEAD}-0-1`, '--reason', ' '], env)).toMatchObject({
      code: 2,
    });
  });
}

describeReal('postgres', 'dead letters of the embedded bus', () => {
  let given: Place;
  beforeAll(async () => {
    const database = await realDatabase();
    const env = { DATABASE_URL: database.url, DATA_DIR: await temporaryFolder() };
    given = { env, database, bus: new EmbeddedBus(database.db, () => undefined) };
  });
  afterAll(async () => {
    await given.bus.stop();
    await given.database[Symbol.asyncDispose]();
  });

  deadLetterContract(() => given);
});

describeReal(['postgres', 'kafka'], 'dead letters of Kafka', () => {
  const prefix = topicPrefix();
  let given: Place;
  beforeAll(async () => {
    const brokers = serviceAddress('kafka');
    await createTopics(brokers, prefix, ALL_TOPICS);
    const database = await realDatabase();
    const kafka = { KAFKA_BROKERS: brokers, TOPIC_PREFIX: prefix };
    const env = { DATABASE_URL: database.url, DATA_DIR: await temporaryFolder(), ...kafka };
    given = { env, database, bus: new KafkaBus(kafkaConnection(prefix), () => undefined) };
  });
  afterAll(async () => {
    await given.bus.stop();
    await deleteTopics(serviceAddress('kafka'), prefix);
    await given.database[Symbol.asyncDispose]();
  });

  deadLetterContract(() => given);
});

embeddedToo(
  'D8-12: on an embedded database a letter between two others is discarded, the others are replayed, and the audit verifies',
  async () => {
    await using folder = await migratedFolder();
    const env = { DATA_DIR: folder.path };
    {
      await using database = await openDatabase({ dataDir: embeddedClusterDir(folder.path) });
      const bus = new EmbeddedBus(database.db, () => undefined);
      for (const key of ['f-1', 'f-2', 'f-3']) await bus.publish([dead(key, '{}')]);
      await bus.stop();
    }
    const { 'f-2': id = '' } = await letters(env);
    await portcullis(['dead-letters', 'discard', id, '--reason', 'a test'], env);
    const all = await portcullis(['transactions', 'replay', '--dlq', '--topic', 'transactions.user', '--json'], env);
    expect(JSON.parse(all.out)).toMatchObject({ replayed: 2 });
    expect(await letters(env)).toEqual({});
    expect(await portcullis(['audit', 'verify'], env)).toMatchObject({ code: 0 });
  },
);

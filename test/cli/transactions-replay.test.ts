import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { EmbeddedBus } from '../../src/events/bus/embedded-bus.ts';
import type { EventBus, OutgoingMessage } from '../../src/events/bus/event-bus.ts';
import { KafkaBus } from '../../src/events/bus/kafka-bus.ts';
import { ALL_TOPICS, REFERENCE_TOPICS } from '../../src/events/bus/topics.ts';
import { portcullis } from '../support/cli/in-process.ts';
import { message, Recorder } from '../support/events/recorder.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { realDatabase } from '../support/harness/databases.ts';
import { startPortcullis } from '../support/harness.ts';
import {
  createTopics,
  deleteTopics,
  freshDatabase,
  kafkaConnection,
  topicPrefix,
} from '../support/services/isolation.ts';
import { describeReal, serviceAddress } from '../support/services/real.ts';
import { startedFolder } from '../support/start/folders.ts';

const REPLAY = ['transactions', 'replay'];
const quiet = () => undefined;

/** The dead letter of a node. */
function node(id: string): OutgoingMessage {
  return message('reference.nodes.dlq', id, { value: Buffer.from(JSON.stringify({ name: 'node', version: 1 })) });
}

/** Where a command works: its variables, and a bus beside it while it does not run. */
interface Place {
  env: NodeJS.ProcessEnv;
  publish(messages: readonly OutgoingMessage[]): Promise<void>;
  /** The keys of a topic, once there are so many. */
  keys(topic: string, count: number): Promise<string[]>;
}

function cliContract(place: () => Place): void {
  it('D6-18: dead letters of every transactions topic are published again once', async () => {
    const { env, publish, keys } = place();
    await publish([
      message('transactions.admin.dlq', 'admin-1'),
      message('transactions.admin.dlq', 'admin-2'),
      message('transactions.user.dlq', 'user-1'),
      message('transactions.registered.dlq', 'registered-1'),
      node(randomUUID()),
    ]);
    const one = await portcullis([...REPLAY, '--dlq', '--topic', 'transactions.user', '--json'], env);
    expect(one).toMatchObject({ code: 0, err: '' });
    expect(JSON.parse(one.out)).toEqual({
      replayed: 1,
      topics: [{ from: 'transactions.user.dlq', topic: 'transactions.user', replayed: 1 }],
      dropped: [],
    });
    const rest = await portcullis([...REPLAY, '--dlq'], env);
    expect(rest).toEqual({
      code: 0,
      err: '',
      out: [
        '2 messages of transactions.admin.dlq published to transactions.admin.\n',
        '0 messages of transactions.user.dlq published to transactions.user.\n',
        '1 messages of transactions.registered.dlq published to transactions.registered.\n',
        '1 messages of reference.nodes.dlq applied.\n',
        ...REFERENCE_TOPICS.slice(1).map((topic) => `0 messages of ${topic}.dlq applied.\n`),
      ].join(''),
    });
    expect(JSON.parse((await portcullis([...REPLAY, '--dlq', '--json'], env)).out)).toMatchObject({ replayed: 0 });
    expect((await keys('transactions.admin', 2)).sort()).toEqual(['admin-1', 'admin-2']);
    expect(await keys('transactions.user', 1)).toEqual(['user-1']);
    expect(await keys('transactions.registered', 1)).toEqual(['registered-1']);
  });

  it('D1-10 D6-18: for reference data it prints how many letters failed again; the next run takes those', async () => {
    const { env, publish } = place();
    const [topic, args] = ['reference.nodes', [...REPLAY, '--dlq', '--topic', 'reference.nodes']];
    await publish([node(randomUUID()), node('no id')]);
    expect(await portcullis(args, env)).toEqual({
      code: 0,
      err: '',
      out: '2 messages of reference.nodes.dlq applied, but 1 dead-lettered again.\n',
    });
    expect(JSON.parse((await portcullis([...args, '--json'], env)).out)).toEqual({
      replayed: 1,
      topics: [{ from: `${topic}.dlq`, topic, replayed: 1, dead_again: 1 }],
      dropped: [],
    });
  });

  it('D6-18: a time range is published again to its own topics', async () => {
    const { env, publish, keys } = place();
    const [from, topic] = [new Date().toISOString(), 'transactions.user'];
    await publish([message(topic, 'timed-1'), message(topic, 'timed-2'), message('transactions.admin', 'timed-3')]);
    const to = new Date(Date.now() + 60_000).toISOString();
    const { code, out, err } = await portcullis([...REPLAY, '--from', from, '--to', to, '--json'], env);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(JSON.parse(out)).toEqual({
      replayed: 3,
      topics: [
        { from: 'transactions.admin', topic: 'transactions.admin', replayed: 1 },
        { from: topic, topic, replayed: 2 },
        { from: 'transactions.registered', topic: 'transactions.registered', replayed: 0 },
      ],
      dropped: [],
    });
    const timed = (await keys(topic, 5)).filter((key) => key.startsWith('timed'));
    expect(timed.sort()).toEqual(['timed-1', 'timed-1', 'timed-2', 'timed-2']);
  });
}

/** The keys that a bus gives to a new group. */
async function keysOn(bus: EventBus, topic: string, count: number): Promise<string[]> {
  const recorder = new Recorder();
  await recorder.follow(bus, topic);
  await recorder.count(count);
  return recorder.keys;
}

describeReal('postgres', 'transactions replay on the embedded bus', () => {
  const database = beforeTests(realDatabase);
  let bus: EmbeddedBus;
  beforeAll(async () => {
    bus = new EmbeddedBus(database.db, quiet);
  });
  afterAll(async () => {
    await bus?.stop();
  });

  cliContract(() => ({
    env: { DATABASE_URL: database.url },
    publish: (messages) => bus.publish(messages),
    keys: (topic, count) => keysOn(bus, topic, count),
  }));
});

it('D1-12 D6-18 D8-20: it replays on an embedded database, beside its server and after it', async () => {
  await using folder = await startedFolder();
  const env = { DATA_DIR: folder.path };
  {
    await using server = await startPortcullis({ dataDir: folder.path });
    await server.service.context.bus.publish([message('transactions.user.dlq', 'user-1')]);
    const { out, err } = await portcullis([...REPLAY, '--dlq', '--json'], env);
    expect({ err, ...JSON.parse(out) }).toMatchObject({ err: '', replayed: 1 });
    await server.service.context.bus.publish([message('transactions.user.dlq', 'user-2')]);
  }
  const rest = await portcullis([...REPLAY, '--dlq', '--topic', 'transactions.user', '--json'], env);
  // The server may have dead-lettered the first one again.
  expect([1, 2]).toContain(JSON.parse(rest.out).replayed);
});

describeReal(['postgres', 'kafka'], 'transactions replay on real servers', () => {
  const prefix = topicPrefix();
  const database = beforeTests(realDatabase);
  let bus: KafkaBus;
  beforeAll(async () => {
    bus = new KafkaBus(kafkaConnection(prefix), quiet);
  });
  afterAll(async () => {
    await bus.stop();
    await deleteTopics(serviceAddress('kafka'), prefix);
  });
  const env = () => ({
    DATABASE_URL: database.url,
    KAFKA_BROKERS: serviceAddress('kafka'),
    TOPIC_PREFIX: prefix,
  });

  it('D1-12: without its topics, or with an older schema, it says to migrate and exits with 1', async () => {
    const missing = await portcullis([...REPLAY, '--dlq'], env());
    expect(missing).toMatchObject({ code: 1, out: '' });
    expect(missing.err).toMatch(/Kafka lacks transactions\.admin, .*: run portcullis migrate first\n$/);
    await using older = await freshDatabase();
    const old = await portcullis([...REPLAY, '--dlq'], { ...env(), DATABASE_URL: older.url });
    expect(old).toMatchObject({ code: 1, out: '' });
    expect(old.err).toContain('run portcullis migrate, or wait');
    await createTopics(serviceAddress('kafka'), prefix, ALL_TOPICS);
  });

  cliContract(() => ({
    env: env(),
    publish: (messages) => bus.publish(messages),
    keys: (topic, count) => keysOn(bus, topic, count),
  }));
});

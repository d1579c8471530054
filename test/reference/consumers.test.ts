import { randomInt, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { EmbeddedBus } from '../../src/events/bus/embedded-bus.ts';
import type { EventBus, IncomingMessage } from '../../src/events/bus/event-bus.ts';
import { KafkaBus } from '../../src/events/bus/kafka-bus.ts';
import { kafkaClient } from '../../src/events/bus/kafka-client.ts';
import { REFERENCE_TOPICS } from '../../src/events/bus/topics.ts';
import { startReferenceConsumers } from '../../src/features/reference/reference.consumers.ts';
import { Reference } from '../../src/features/reference/reference.service.ts';
import type { Database } from '../../src/platform/database/open-database.ts';
import { busByHand, message, Recorder } from '../support/events/recorder.ts';
import { embeddedDatabase, realDatabase, scratchDatabase } from '../support/harness/databases.ts';
import { type Fixture, fixtureOn, newFamily, rowOf } from '../support/reference/fixture.ts';
import { kafkaConnection, topicPrefix } from '../support/services/isolation.ts';
import { describeReal } from '../support/services/real.ts';
import { watchedDb } from '../support/transactions/watched-db.ts';

/** The consumer, called by hand, and what it published. */
async function handlerOn(reference: Reference) {
  const { bus, published, handle, topics } = busByHand();
  await startReferenceConsumers({ bus, reference });
  expect(topics()).toEqual(REFERENCE_TOPICS);
  return { handle: (batch: IncomingMessage[]) => handle(batch[0]?.topic ?? '', batch), published };
}

function incoming(topic: string, key: string, value: unknown, offset = 1): IncomingMessage {
  const bytes = value === null ? null : Buffer.isBuffer(value) ? value : Buffer.from(JSON.stringify(value));
  return { ...message(topic, key), value: bytes, partition: 0, offset: `${offset}`, timestampMs: 1_000 };
}

const chain = (id: string, version: number, name: string) => incoming('reference.chains', id, { name, version });

describe('the consumer of reference data', () => {
  let fixture: Fixture;
  let neighbour: ReturnType<typeof newFamily>;
  beforeAll(async () => {
    fixture = fixtureOn(await scratchDatabase());
    neighbour = newFamily();
    await fixture.reference.apply(neighbour.all());
  });
  afterAll(() => fixture.database[Symbol.asyncDispose]());

  const account = { name: 'A', type: 'organisation', status: 1, created_at: '2026-01-05T09:30:00Z', version: 1 };
  const poison: Record<string, () => IncomingMessage> = {
    'malformed JSON': () => incoming('reference.chains', randomUUID(), Buffer.from('{')),
    'malformed UTF-8': () => incoming('reference.chains', randomUUID(), Buffer.from([0x22, 0xff, 0x22])),
    'JSON null, which is not a tombstone': () => incoming('reference.chains', randomUUID(), Buffer.from('null')),
    'a list': () => incoming('reference.chains', randomUUID(), []),
    'a key that is not a UUID': () => incoming('reference.chains', 'x', { name: 'x', version: 1 }),
    'no key': () => incoming('reference.chains', '', { name: 'x', version: 1 }),
    'another id than the key': () =>
      incoming('reference.chains', randomUUID(), { id: randomUUID(), name: '', version: 1 }),
    'no version': () => incoming('reference.chains', randomUUID(), { name: 'x' }),
    'a version that is not an integer': () => incoming('reference.chains', randomUUID(), { name: 'x', version: 1.5 }),
    'a version that is a string': () => incoming('reference.chains', randomUUID(), { name: 'x', version: '1' }),
    'a version below 0': () => incoming('reference.chains', randomUUID(), { name: 'x', version: -1 }),
    'a version of 2^63': () =>
      incoming('reference.chains', randomUUID(), Buffer.from('{"name":"x","version":9223372036854775808}')),
    'no name': () => incoming('reference.chains', randomUUID(), { version: 1 }),
    'U+0000 in a name': () => incoming('reference.chains', randomUUID(), { name: 'a\0', version: 1 }),
    'a symbol that is too long for its index, while its network is missing': () =>
      incoming('reference.currencies', randomUUID(), { network_id: randomUUID(), symbol: 'é'.repeat(641), version: 1 }),
    'an account without a node': () => incoming('reference.accounts', randomUUID(), account),
    'an account with a status of 2^31': () =>
      incoming('reference.accounts', randomUUID(), { ...account, node_id: neighbour.ids.nodes, status: 2 ** 31 }),
    'an account with an invalid time': () =>
      incoming('reference.accounts', randomUUID(), { ...account, node_id: neighbour.ids.nodes, created_at: 'now' }),
    'an account that moves to another node': () =>
      incoming('reference.accounts', neighbour.ids.accounts, { ...account, version: 2, node_id: randomUUID() }),
  };

  it.each(Object.entries(poison))(
    'D1-10: %s is dead-lettered; the rest of its batch is applied',
    async (_name, make) => {
      const { handle, published } = await handlerOn(fixture.reference);
      const bad = make();
      const good = [randomUUID(), randomUUID()];
      await handle([chain(good[0] ?? '', 1, 'before'), bad, chain(good[1] ?? '', 1, 'after')]);
      const headers = { error: expect.stringMatching(/./), 'original-topic': bad.topic };
      expect(published).toMatchObject([{ topic: `${bad.topic}.dlq`, key: bad.key, value: bad.value, headers }]);
      for (const id of good) expect(await rowOf(fixture, 'chains', id)).toBeDefined();
    },
  );

  it('D1-10: a symbol of the greatest length that waited for its network is indexed', async () => {
    const { ids, version } = newFamily();
    const symbol = Array.from({ length: 640 }, () => String.fromCodePoint(randomInt(0x1_f300, 0x1_ffff))).join('');
    const { handle, published } = await handlerOn(fixture.reference);
    await handle([incoming('reference.currencies', ids.currencies, { network_id: ids.networks, symbol, version: 1 })]);
    expect(await rowOf(fixture, 'currencies', ids.currencies)).toBeUndefined();
    await fixture.reference.apply([version('chains', 1), version('networks', 1)]);
    expect(published).toEqual([]);
    expect(await rowOf(fixture, 'currencies', ids.currencies)).toMatchObject({ symbol });
  });

  it('D1-10: name and decimals of a currency and the explorer of a network are optional, and cleared when absent', async () => {
    const { ids, version } = newFamily();
    const explorer_url = 'https://explorer.example/tx/{hash}?from=portcullis';
    await fixture.reference.apply([
      ...['nodes', 'chains'].map((kind) => version(kind as 'nodes', 1)),
      version('networks', 1, { explorer_url }),
      version('currencies', 1, { name: 'USD Coin', decimals: 6 }),
    ]);
    expect(await rowOf(fixture, 'networks', ids.networks)).toMatchObject({ explorer_url });
    expect(await rowOf(fixture, 'currencies', ids.currencies)).toMatchObject({ name: 'USD Coin', decimals: 6 });
    await fixture.reference.apply([version('networks', 2), version('currencies', 2)]);
    expect(await rowOf(fixture, 'networks', ids.networks)).toMatchObject({ version: '2', explorer_url: null });
    expect(await rowOf(fixture, 'currencies', ids.currencies)).toMatchObject({ name: null, decimals: null });
  });

  it.each([
    ['networks', { explorer_url: 'javascript:alert({hash})' }],
    ['networks', { explorer_url: '' }],
    ['networks', { explorer_url: 'https://explorer.example/tx/' }],
    ['networks', { explorer_url: 'https://{hash}/tx' }],
    ['networks', { explorer_url: 'https://explorer.example@other.example/tx/{hash}' }],
    ['currencies', { decimals: 256 }],
    ['currencies', { decimals: '18' }],
    ['currencies', { name: { en: 'Euro' } }],
  ] as const)('D1-10: a row of %s with an invalid optional member is stored without it: %j', async (kind, member) => {
    const { handle, published } = await handlerOn(fixture.reference);
    const row = { network_id: neighbour.ids.networks, symbol: 'X', chain_id: neighbour.ids.chains, version: 1 };
    const id = randomUUID();
    await handle([incoming(`reference.${kind}`, id, { ...row, ...(kind === 'networks' && { name: 'x' }), ...member })]);
    expect(published).toEqual([]);
    const [name = ''] = Object.keys(member);
    expect(await rowOf(fixture, kind, id)).toMatchObject({ version: '1', [name]: null });
  });

  it.each(['08006', '40001', '40P01', '53300', '57P01', 'XX000'])(
    'D1-10: a database failure with code %s dead-letters nothing, and the batch is repeated',
    async (code) => {
      let isOut = true;
      const statement = () => {
        if (isOut) throw Object.assign(new Error('out'), { code });
      };
      const db = watchedDb(fixture.db, { statement });
      const { handle, published } = await handlerOn(new Reference({ db, nowMs: Date.now }));
      const id = randomUUID();
      await expect(handle([chain(id, 1, 'first'), chain(id, 2, 'second')])).rejects.toThrow('out');
      isOut = false;
      await handle([chain(id, 1, 'first'), chain(id, 2, 'second')]);
      expect(published).toEqual([]);
      expect(await rowOf(fixture, 'chains', id)).toMatchObject({ name: 'second' });
    },
  );

  it('D1-10: versions beyond 2^53 are compared exactly', async () => {
    const { handle } = await handlerOn(fixture.reference);
    const id = randomUUID();
    const at = (version: string) =>
      incoming('reference.chains', id, Buffer.from(`{"name":"${version}","version":${version}}`));
    for (const version of ['9007199254740993', '9007199254740994', '9007199254740992']) await handle([at(version)]);
    expect(await rowOf(fixture, 'chains', id)).toMatchObject({ version: '9007199254740994' });
  });
});

/** What the test needs: a broker for tests has little memory for partitions. */
const NEEDED_TOPICS = [...REFERENCE_TOPICS, 'reference.nodes.dlq'];

function busSuite(
  openDatabase: () => Promise<Database>,
  openBus: (database: Database) => EventBus,
  clean: () => Promise<void> = async () => undefined,
): void {
  it('D1-10: published rows and tombstones are applied, and invalid ones are dead-lettered', async () => {
    const fixture = fixtureOn(await openDatabase());
    const bus = openBus(fixture.database);
    await bus.ensureTopics(NEEDED_TOPICS);
    const subscription = await startReferenceConsumers({ bus, reference: fixture.reference });
    onTestFinished(async () => {
      await subscription.stop();
      await bus.stop();
      await clean();
      await fixture.database[Symbol.asyncDispose]();
    });
    const { ids, members } = newFamily();
    const row = (value: object) => Buffer.from(JSON.stringify({ version: 1, name: 'n', symbol: 's', ...value }));
    const times = { created_at: '2026-01-05T09:30:00.123456Z', type: 'bond', status: 'draft' };
    await bus.publish([
      message('reference.assets', ids.assets, { value: row({ ...members.assets, ...times }) }),
      message('reference.wallets', ids.wallets, { value: row({ ...members.wallets, ...times }) }),
      message('reference.accounts', ids.accounts, { value: row({ ...members.accounts, ...times, status: 1 }) }),
      message('reference.currencies', ids.currencies, { value: row(members.currencies) }),
      message('reference.networks', ids.networks, { value: row(members.networks) }),
      message('reference.nodes', 'bad', { value: row({}) }),
      message('reference.nodes', ids.nodes, { value: row({}) }),
      message('reference.chains', ids.chains, { value: row({}) }),
    ]);
    const dead = new Recorder();
    await dead.follow(bus, 'reference.nodes.dlq');
    await expect.poll(() => rowOf(fixture, 'assets', ids.assets)).toBeDefined();
    await expect.poll(() => rowOf(fixture, 'wallets', ids.wallets)).toBeDefined();
    await bus.publish([message('reference.accounts', ids.accounts, { value: null })]);
    await expect.poll(async () => (await rowOf(fixture, 'accounts', ids.accounts))?.deleted_at ?? null).not.toBeNull();
    await dead.count(1);
    expect(dead.keys).toEqual(['bad']);
  });
}

describe('on the embedded bus', () => busSuite(embeddedDatabase, ({ db }) => new EmbeddedBus(db, () => undefined)));
describeReal(['postgres', 'kafka'], 'on Kafka', () => {
  const prefix = topicPrefix();
  const connection = () => kafkaConnection(prefix);
  busSuite(
    realDatabase,
    () => new KafkaBus(connection(), () => undefined),
    async () => {
      const admin = (await kafkaClient(connection(), 10_000, () => undefined)).admin();
      await admin.connect();
      const { resources } = await admin.describeConfigs({
        includeSynonyms: false,
        resources: [{ type: 2, name: `${prefix}reference.accounts`, configNames: ['cleanup.policy'] }],
      });
      expect(resources[0]?.configEntries[0]).toMatchObject({ configName: 'cleanup.policy', configValue: 'compact' });
      await admin.deleteTopics({ topics: NEEDED_TOPICS.map((topic) => prefix + topic) });
      await admin.disconnect();
    },
  );
});

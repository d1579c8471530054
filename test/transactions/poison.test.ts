import { randomUUID } from 'node:crypto';
import { expect, it, onTestFinished } from 'vitest';
import type { IncomingMessage } from '../../src/events/bus/event-bus.ts';
import { TOPICS } from '../../src/events/bus/topics.ts';
import { startTransactionConsumers } from '../../src/features/transactions/transaction-messages.service.ts';
import type { Database } from '../../src/platform/database/open-database.ts';
import { busByHand, message } from '../support/events/recorder.ts';
import { embeddedDatabase, type RealDatabase, realDatabase } from '../support/harness/databases.ts';
import { describeEmbedded } from '../support/harness/in-turn.ts';
import { withPostgres } from '../support/services/pg-client.ts';
import { describeReal, serviceAddress } from '../support/services/real.ts';
import {
  delivery,
  type Fixture,
  fixtureOn,
  mirrorOn,
  rowOf,
  type Told,
  transactionOf,
  useMirror,
} from '../support/transactions/fixture.ts';
import { watchedDb } from '../support/transactions/watched-db.ts';

/** The consumers, called by hand, and what they published. */
async function handlersOn(transactions: Fixture['mirror']) {
  const { bus, ...hand } = busByHand();
  await startTransactionConsumers({ bus, transactions });
  return hand;
}

function incoming(topic: string, value: Uint8Array, headers: Record<string, string> = {}): IncomingMessage {
  return { ...message(topic, 'key'), value: Buffer.from(value), headers, partition: 3, offset: '42', timestampMs: 0 };
}

function told(of: Told, headers?: Record<string, string>): IncomingMessage {
  return incoming(TOPICS.admin, delivery(of).body, headers);
}

function registration(members: object): IncomingMessage {
  return incoming(TOPICS.registered, Buffer.from(JSON.stringify(members)));
}

function poisonContract(open: () => Promise<Database>): void {
  const fixture = useMirror(open);

  const poison: Record<string, () => IncomingMessage> = {
    'malformed JSON': () => incoming(TOPICS.admin, Buffer.from('{')),
    'malformed UTF-8': () => incoming(TOPICS.admin, Buffer.from([0xff])),
    'no value': () => ({ ...incoming(TOPICS.admin, Buffer.alloc(0)), value: null }),
    'no notification': () => incoming(TOPICS.admin, Buffer.from('{"id":"x"}')),
    'a value that the database refuses (class 22)': () =>
      told({ id: randomUUID(), status: 3 }, { 'correlation-id': 'a\0b' }),
    'no registration': () => registration({ id: 'x' }),
    'a registration that a constraint refuses (class 23)': () =>
      registration({ id: randomUUID(), collection: 'otc_transactions', type: 1, node_id: randomUUID() }),
  };

  it.each(Object.entries(poison))(
    'D6-18: %s is dead-lettered with its headers; the rest of its batch is applied',
    async (_name, make) => {
      const { handle, published } = await handlersOn(fixture.mirror);
      const bad = make();
      const headers = { ...bad.headers, 'event-id': randomUUID() };
      const transaction = transactionOf(fixture);
      const { id, nodeId: node_id } = transaction;
      const isRegistration = bad.topic === TOPICS.registered;
      if (!isRegistration) await fixture.mirror.register(transaction);
      const good = isRegistration
        ? registration({ id, collection: transaction.collection, type: 1, node_id })
        : told({ id, status: 3 });
      await handle(bad.topic, [{ ...bad, headers }, good]);
      expect(await rowOf(fixture, id)).toMatchObject({ status: isRegistration ? null : 3 });
      expect(published).toEqual([
        {
          topic: `${bad.topic}.dlq`,
          key: 'key',
          value: bad.value,
          headers: {
            ...headers,
            error: expect.stringMatching(/./),
            'original-topic': bad.topic,
            'original-partition': '3',
            'original-offset': '42',
          },
        },
      ]);
    },
  );

  it.each(['08006', '40001', '40P01', '53300', '57P01', '57014', 'XX000'])(
    'D6-18: a database failure with code %s dead-letters nothing, and the batch is repeated',
    async (code) => {
      let isOut = true;
      const statement = () => {
        if (isOut) throw Object.assign(new Error('out'), { code });
      };
      const { handle, published } = await handlersOn(mirrorOn(watchedDb(fixture.db, { statement })));
      const transaction = transactionOf(fixture);
      await fixture.mirror.register(transaction);
      const batch = [told({ id: transaction.id, status: 1 }), told({ id: transaction.id, status: 3 })];
      await expect(handle(TOPICS.admin, batch)).rejects.toThrow('out');
      isOut = false;
      await handle(TOPICS.admin, batch);
      expect(published).toEqual([]);
      expect(await rowOf(fixture, transaction.id)).toMatchObject({ status: 3 });
    },
  );
}

describeEmbedded('malformed messages, on the embedded database', () => {
  poisonContract(embeddedDatabase);
});

describeReal('postgres', 'poison on PostgreSQL', () => {
  poisonContract(realDatabase);

  it('D6-18: a server that ends its connections and accepts no new ones dead-letters nothing', async () => {
    const database: RealDatabase = await realDatabase();
    onTestFinished(() => database[Symbol.asyncDispose]());
    const fixture = await fixtureOn(database);
    const { handle, published } = await handlersOn(fixture.mirror);
    const transaction = transactionOf(fixture);
    await fixture.mirror.register(transaction);
    const name = new URL(database.url).pathname.slice(1);
    const allow = (isAllowed: boolean) =>
      withPostgres(serviceAddress('postgres'), async (client) => {
        await client.query(`alter database ${name} allow_connections ${isAllowed}`);
        if (!isAllowed) {
          await client.query(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`);
        }
      });
    const batch = [told({ id: transaction.id, status: 3 })];
    await allow(false);
    await expect(handle(TOPICS.admin, batch)).rejects.toThrow();
    await expect(handle(TOPICS.admin, batch)).rejects.toThrow();
    await allow(true);
    await handle(TOPICS.admin, batch);
    expect(published).toEqual([]);
    expect(await rowOf(fixture, transaction.id)).toMatchObject({ status: 3 });
  });
});

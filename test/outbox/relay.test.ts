import { randomUUID } from 'node:crypto';
import { afterEach, expect, it, vi } from 'vitest';
import { BusUnavailableError, type OutgoingMessage } from '../../src/events/bus/event-bus.ts';
import { OutboxRelay } from '../../src/events/outbox/outbox.ts';
import { silentLog } from '../../src/lib/log.ts';
import { uuidV7 } from '../../src/lib/uuid-v7.ts';
import type { Database } from '../../src/platform/database/open-database.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { embeddedDatabase, realDatabase } from '../support/harness/databases.ts';
import { describeEmbedded } from '../support/harness/in-turn.ts';
import { describeReal } from '../support/services/real.ts';

const TOPIC = 'users.kyc-token';

function event(key: string, payload = '{}') {
  const created_at = new Date().toISOString();
  return { id: uuidV7(), topic: TOPIC, key, event_type: 'test', payload, correlation_id: 'c', created_at };
}

async function write(database: Database, events: ReturnType<typeof event>[]) {
  await database.db.unscoped('test').run((k) => k.insertInto('outbox').values(events));
  return events.map(({ id }) => id);
}

async function waiting(database: Database): Promise<number> {
  return (await database.db.unscoped('test').run((k) => k.selectFrom('outbox').select('id'))).length;
}

/** A bus that takes, refuses or holds what it is given. */
function paperBus() {
  const taken: OutgoingMessage[] = [];
  const bus = {
    taken,
    ids: () => taken.map(({ headers }) => headers['event-id']),
    refuses: false,
    held: undefined as Promise<void> | undefined,
    async publish(messages: readonly OutgoingMessage[]) {
      if (bus.refuses) throw new BusUnavailableError('away');
      await bus.held;
      taken.push(...messages);
    },
  };
  return bus;
}

function contract(open: () => Promise<Database>, isAlone: boolean): void {
  const database = beforeTests(open);
  const relays: OutboxRelay[] = [];

  afterEach(async () => {
    await Promise.all(relays.splice(0).map((relay) => relay.stop()));
    await database.db.unscoped('test').run((k) => k.deleteFrom('outbox'));
  });

  const relayTo = (bus: ReturnType<typeof paperBus>) => {
    const relay = new OutboxRelay({ db: database.db, bus, isAlone, log: silentLog });
    relays.push(relay);
    return relay;
  };

  it('D7-08: publishes each event with its id, in the order of writing, and then deletes it', async () => {
    const bus = paperBus();
    const keys = ['a', 'b', 'a', 'c', 'a', 'b'];
    const ids = await write(
      database,
      keys.map((key, index) => event(key, `{"n":${index}}`)),
    );
    expect(await relayTo(bus).relayBatch()).toBe(6);
    expect(bus.ids()).toEqual(ids);
    expect(bus.taken[0]).toMatchObject({
      topic: TOPIC,
      key: 'a',
      value: Buffer.from('{"n":0}'),
      headers: { 'event-type': 'test', 'schema-version': '1', 'correlation-id': 'c' },
    });
    expect(await relayTo(bus).relayBatch()).toBe(0);
  });

  it('D7-08: while the bus is unavailable all events are kept, and afterwards they are published in order', async () => {
    const bus = paperBus();
    bus.refuses = true;
    const relay = relayTo(bus);
    const ids = await write(
      database,
      Array.from({ length: 1_200 }, (_, index) => event(String(index % 7))),
    );
    await expect(relay.relayBatch()).rejects.toThrow('away');
    relay.start();
    expect(await waiting(database)).toBe(1_200);
    bus.refuses = false;
    await vi.waitFor(() => expect(bus.taken.length).toBeGreaterThanOrEqual(1_200));
    expect(bus.ids()).toEqual(ids);
    await vi.waitFor(async () => expect(await waiting(database)).toBe(0));
  });

  it('D7-08: a notification during a batch is not missed', async () => {
    const bus = paperBus();
    const relay = relayTo(bus);
    relay.start();
    for (let index = 0; index < 20; index += 1) {
      const [id] = await write(database, [event('k')]);
      relay.notify();
      await vi.waitFor(() => expect(bus.ids()).toContain(id), { interval: 2 });
    }
    expect(bus.taken).toHaveLength(20);
  });

  it('D7-08: a batch stays well below the message size limit of a broker', async () => {
    const bus = paperBus();
    await write(
      database,
      Array.from({ length: 6 }, () => event('k', JSON.stringify('x'.repeat(100 * 1024)))),
    );
    await write(database, [event('k', JSON.stringify('x'.repeat(700 * 1024)))]);
    const sizes = [];
    for (;;) {
      const relayed = await relayTo(bus).relayBatch();
      if (relayed === 0) break;
      sizes.push(relayed);
    }
    expect(sizes).toEqual([2, 2, 2, 1]);
  });

  it('D7-08: stops after the running batch, and starts no other', async () => {
    const bus = paperBus();
    const release = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const relay = new OutboxRelay({
      db: database.db,
      bus: {
        async publish(messages) {
          begun.resolve();
          await release.promise;
          await bus.publish(messages);
        },
      },
      isAlone,
      log: silentLog,
    });
    await write(database, [event('k')]);
    relay.start();
    await begun.promise;
    const stopped = relay.stop();
    release.resolve();
    await stopped;
    expect(bus.taken).toHaveLength(1);
    await write(database, [event('k')]);
    relay.notify();
    expect(await waiting(database)).toBe(1);
  });
}

describeEmbedded('the relay as the only one, on an embedded database', () => contract(embeddedDatabase, true));
describeReal('postgres', 'the relay, on PostgreSQL', () => contract(realDatabase, false));

describeReal('postgres', 'several relays', () => {
  const database = beforeTests(realDatabase);

  it('D7-08: only one of several publishes at a time, so that events are neither repeated nor reordered', async () => {
    const bus = paperBus();
    const log = silentLog;
    const relays = Array.from({ length: 3 }, () => new OutboxRelay({ db: database.db, bus, isAlone: false, log }));
    for (const relay of relays) relay.start();
    const ids: string[] = [];
    for (let round = 0; round < 20; round += 1) {
      ids.push(
        ...(await write(
          database,
          Array.from({ length: 40 }, () => event(randomUUID())),
        )),
      );
      for (const relay of relays) relay.notify();
    }
    await vi.waitFor(() => expect(bus.taken.length).toBeGreaterThanOrEqual(ids.length));
    await Promise.all(relays.map((relay) => relay.stop()));
    expect(bus.ids()).toEqual(ids);
  });
});

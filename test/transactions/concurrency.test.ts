import { setImmediate } from 'node:timers/promises';
import { expect, it, vi } from 'vitest';
import { databaseEventLog, type LoggedEvent } from '../../src/events/streams/event-log.ts';
import type { Database } from '../../src/platform/database/open-database.ts';
import { realDatabase } from '../support/harness/databases.ts';
import { describeReal } from '../support/services/real.ts';
import {
  ADMIN,
  delivery,
  eventsOf,
  type Fixture,
  logOf,
  mirrorOn,
  parkedOf,
  rowOf,
  transactionOf,
  USER,
  useMirror,
} from '../support/transactions/fixture.ts';
import { heldCommit, watchedDb } from '../support/transactions/watched-db.ts';

const PAGE = 50;

/** Waits until so many statements wait for a lock that another transaction holds. */
async function waiters({ db }: Database, count: number): Promise<void> {
  await vi.waitFor(
    async () => {
      const [row] = await db.unscoped('test').raw<{ count: string }>(
        (text) => text`
          select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      );
      expect(Number(row?.count)).toBe(count);
    },
    { interval: 10 },
  );
}

describeReal('postgres', 'the transaction mirror under concurrency', () => {
  const fixture = useMirror(realDatabase);

  it('D6-17: an event of a node waits for the commit of an earlier one; other nodes do not wait', async () => {
    const { db, mirror, nodeIds } = fixture;
    const [first, second] = [transactionOf(fixture), transactionOf(fixture)];
    const elsewhere = transactionOf(fixture, { nodeId: nodeIds[1] });
    for (const transaction of [first, second, elsewhere]) await mirror.register(transaction);
    const { counter } = await logOf(fixture, nodeIds[0]);
    const held = heldCommit();
    const slow = mirrorOn(watchedDb(db, held)).applyBatch(ADMIN, [delivery({ id: first.id, status: 3 })]);
    await held.reached;
    const next = mirror.applyBatch(ADMIN, [delivery({ id: second.id, status: 3 })]);
    await waiters(fixture.database, 1);
    await mirror.applyBatch(ADMIN, [delivery({ id: elsewhere.id, status: 3 })]);
    expect(await eventsOf(fixture, elsewhere.id)).toHaveLength(1);
    expect(await logOf(fixture, nodeIds[0])).toMatchObject({ counter });
    held.release();
    await Promise.all([slow, next]);
    expect(await eventsOf(fixture, first.id)).toMatchObject([{ seq: String(counter + 1) }]);
    expect(await eventsOf(fixture, second.id)).toMatchObject([{ seq: String(counter + 2) }]);
  });

  it('D6-17: batches over the same ids do not deadlock, and a reader of the log misses no event', async () => {
    const { mirror, nodeIds, db } = fixture;
    const transactions = Array.from({ length: 16 }, (_, at) =>
      transactionOf(fixture, {
        nodeId: nodeIds[at % 2] ?? nodeIds[0],
        collection: at % 3 === 0 ? 'otc_transactions' : 'token_transactions',
      }),
    );
    const registeredLate = transactions.slice(8);
    for (const transaction of transactions.slice(0, 8)) await mirror.register(transaction);
    const readers = nodeIds.map((nodeId) => reader(fixture, nodeId));
    const write = async (writer: number) => {
      for (let round = 0; round < 12; round += 1) {
        const order = transactions.toSorted((a, b) => mixed(a.id, writer, round) - mixed(b.id, writer, round));
        const told = order
          .slice(0, 6)
          .map(({ id }) => delivery({ id, status: 1 + ((writer + round) % 4), second: round, gas_used: writer }));
        await mirror.applyBatch(writer % 2 === 0 ? ADMIN : USER, told);
        const late = registeredLate[(writer + round) % registeredLate.length];
        if (late && round % 3 === 0) await mirror.register(late);
      }
    };
    await Promise.all(Array.from({ length: 8 }, (_, writer) => write(writer)));
    for (const { stop, seen, nodeId } of readers) {
      await stop();
      const events = await databaseEventLog(db).readEvents(nodeId, 0n, 10_000);
      expect(events.length).toBeGreaterThan(20);
      expect(seen.map(({ seq }) => seq)).toEqual(events.map(({ seq }) => seq));
      expect(events.map(({ seq }) => Number(seq))).toEqual(events.map((_, at) => at + 1));
    }
  });

  it('D6-20: a notification that arrives during a registration is applied', async () => {
    const transaction = transactionOf(fixture);
    const held = heldCommit();
    const registering = mirrorOn(watchedDb(fixture.db, held)).register(transaction);
    await held.reached;
    const applying = fixture.mirror.applyBatch(ADMIN, [delivery({ id: transaction.id, status: 3 })]);
    await waiters(fixture.database, 1);
    held.release();
    await Promise.all([registering, applying]);
    expect(await rowOf(fixture, transaction.id)).toMatchObject({ status: 3 });
    expect(await parkedOf(fixture, transaction.id)).toBe(0);
  });

  it('D6-20: a registration that arrives while a notification is being parked applies it', async () => {
    const transaction = transactionOf(fixture);
    const held = heldCommit();
    const parking = mirrorOn(watchedDb(fixture.db, held)).applyBatch(USER, [
      delivery({ id: transaction.id, status: 3 }),
    ]);
    await held.reached;
    const registering = fixture.mirror.register(transaction);
    await waiters(fixture.database, 1);
    held.release();
    await Promise.all([parking, registering]);
    expect(await rowOf(fixture, transaction.id)).toMatchObject({ status: 3 });
    expect(await parkedOf(fixture, transaction.id)).toBe(0);
  });
});

/** Reads a node's log after its own position, again and again, as a tailer does. */
function reader({ db }: Fixture, nodeId: string) {
  const log = databaseEventLog(db);
  const seen: LoggedEvent[] = [];
  let isStopped = false;
  const read = async () => {
    for (let isLast = false; !isLast; ) {
      isLast = isStopped;
      const events = await log.readEvents(nodeId, seen.at(-1)?.seq ?? 0n, PAGE);
      seen.push(...events);
      if (events.length > 0) isLast = false;
      await setImmediate();
    }
  };
  const reading = read();
  return {
    nodeId,
    seen,
    stop: () => {
      isStopped = true;
      return reading;
    },
  };
}

/** A fixed disorder: another one for each writer and round. */
function mixed(id: string, writer: number, round: number): number {
  let hash = writer * 31 + round * 17;
  for (const character of id) hash = Math.imul(hash ^ character.charCodeAt(0), 16_777_619) >>> 0;
  return hash;
}

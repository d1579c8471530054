import { beforeEach, expect, it } from 'vitest';
import { LOOKUPS_AT_ONCE, lookupBackoffMs } from '../../src/features/transactions/transaction-lookups.service.ts';
import { LookupStore } from '../../src/features/transactions/transactions.store.ts';
import type { Database } from '../../src/platform/database/open-database.ts';
import {
  ADMIN,
  delivery,
  eventsOf,
  mirrorOn,
  parkedOf,
  rowOf,
  transactionOf,
  USER,
  useMirror,
} from '../support/transactions/fixture.ts';
import { type Asked, askedOwner, dueOf, lookupsLeft, lookupsOn } from '../support/transactions/lookup-fixture.ts';
import { watchedDb } from '../support/transactions/watched-db.ts';

/** What lookups promise on every database. */
export function lookupsContract(open: () => Promise<Database>): void {
  const fixture = useMirror(open);

  // What one test leaves waiting is not for the next one's owner.
  beforeEach(async () => {
    await fixture.db.unscoped('test').run((k) => k.deleteFrom('parked_notifications'));
    await fixture.db.unscoped('test').run((k) => k.deleteFrom('transaction_lookups'));
  });

  const park = (id: string) => fixture.mirror.applyBatch(ADMIN, [delivery({ id, status: 3 })]);
  const untilNone = async (owner: Asked) => {
    const { lookups, signal } = lookupsOn(fixture, owner);
    while (await lookups.iterate(signal)) await lookups.settled();
  };

  it('D6-20: an id with parked notifications is looked up once, registered as its owner says, and applied', async () => {
    const transaction = transactionOf(fixture);
    await park(transaction.id);
    await fixture.mirror.applyBatch(USER, [delivery({ id: transaction.id, status: 3 })]);
    const owner = askedOwner(async (id) => (id === transaction.id ? transaction : undefined));
    await untilNone(owner);
    expect(owner.asked).toEqual([transaction.id]);
    expect(await rowOf(fixture, transaction.id)).toMatchObject({ node_id: transaction.nodeId, status: 3 });
    expect(await parkedOf(fixture, transaction.id)).toBe(0);
    expect(await eventsOf(fixture, transaction.id)).toHaveLength(1);
    expect(await lookupsLeft(fixture)).toEqual([]);
  });

  it('D6-20: a registered id is not looked up', async () => {
    const [before, after] = [transactionOf(fixture), transactionOf(fixture)];
    await fixture.mirror.register(before);
    for (const { id } of [before, after]) await park(id);
    await fixture.mirror.registerByOwner(after);
    const owner = askedOwner(async () => undefined);
    await untilNone(owner);
    expect(owner.asked).toEqual([]);
  });

  it('D6-20: the result of a lookup overrides a registration by mutation during it, and not one by topic', async () => {
    const [mine, other] = fixture.nodeIds;
    const said = [transactionOf(fixture, { nodeId: other }), transactionOf(fixture, { nodeId: other })] as const;
    for (const { id } of said) await park(id);
    const owner = askedOwner(async (id) => {
      const found = said.find((one) => one.id === id);
      if (!found) return undefined;
      if (found === said[0]) await fixture.mirror.register({ ...found, nodeId: mine });
      else await fixture.mirror.registerByOwner({ ...found, nodeId: mine });
      return found;
    });
    await untilNone(owner);
    expect(await rowOf(fixture, said[0].id)).toMatchObject({ node_id: other, registered_by: 'topic', status: 3 });
    expect((await eventsOf(fixture, said[0].id)).map(({ node_id }) => node_id)).toEqual([other]);
    expect(await rowOf(fixture, said[1].id)).toMatchObject({ node_id: mine, registered_by: 'topic', status: 3 });
  });

  it.each([
    ['does not know,', async () => undefined],
    ['fails for,', () => Promise.reject(new Error('the answer is 500'))],
    ['assigns to an unknown node,', async (id: string) => transactionOf(fixture, { id, nodeId: crypto.randomUUID() })],
  ])(
    'D6-20: an id that the owner %s is retried with backoff from a second to an hour, and never dropped',
    async (_n, find) => {
      const { id } = transactionOf(fixture);
      await park(id);
      let nowMs = Date.now();
      const owner = askedOwner(find);
      const { lookups, signal } = lookupsOn(fixture, owner, { nowMs: () => nowMs });
      const rests: number[] = [];
      for (let attempt = 1; attempt <= 14; attempt += 1) {
        expect(await lookups.iterate(signal)).toBe(true);
        await lookups.settled();
        rests.push((await dueOf(fixture, id)) - nowMs);
        nowMs += lookupBackoffMs(attempt) - 1;
        expect(await lookups.iterate(signal)).toBe(false);
        nowMs += 1;
      }
      expect(rests).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600].map((s) => s * 1000));
      expect(owner.asked).toHaveLength(14);
      expect(await parkedOf(fixture, id)).toBe(1);
      await fixture.mirror.register(transactionOf(fixture, { id }));
      expect(await rowOf(fixture, id)).toMatchObject({ status: 3 });
    },
  );

  it('D6-20: a process makes a limited number of lookups at once, and slow ones do not block parking or registration', async () => {
    const ids = Array.from({ length: LOOKUPS_AT_ONCE + 3 }, () => transactionOf(fixture).id);
    for (const id of ids) await park(id);
    const held = Promise.withResolvers<undefined>();
    const owner = askedOwner(() => held.promise);
    const { lookups, signal } = lookupsOn(fixture, owner);
    const turn = lookups.iterate(signal);
    await expect.poll(() => owner.asked.length).toBe(LOOKUPS_AT_ONCE);
    const late = transactionOf(fixture);
    await park(late.id);
    await fixture.mirror.register(late);
    expect(await rowOf(fixture, late.id)).toMatchObject({ status: 3 });
    expect(owner.asked).toHaveLength(LOOKUPS_AT_ONCE);
    held.resolve(undefined);
    await turn;
    await untilNone(owner);
    expect(owner.asked.toSorted()).toEqual(ids.toSorted());
  });

  it('D6-20: a lookup of a stopped process can be taken over at once, and one of a killed process after its lease', async () => {
    const [stopped, killed] = [transactionOf(fixture), transactionOf(fixture)];
    const nowMs = Date.now();
    const clock = { nowMs: () => nowMs };
    await park(stopped.id);
    const aborted = lookupsOn(
      fixture,
      askedOwner((_id, signal) => rejectedBy(signal)),
      clock,
    );
    await aborted.lookups.iterate(aborted.signal);
    aborted.stop();
    await aborted.lookups.settled();
    expect(await dueOf(fixture, stopped.id)).toBe(nowMs);
    await fixture.mirror.register(stopped);
    await park(killed.id);
    const store = new LookupStore(fixture.db);
    await store.claim({ limit: 1, nowMs, untilMs: nowMs + 1_000 });
    const owner = askedOwner(async () => killed);
    const next = lookupsOn(fixture, owner, { nowMs: () => nowMs + 999 });
    expect(await next.lookups.iterate(next.signal)).toBe(false);
    const later = lookupsOn(fixture, owner, { nowMs: () => nowMs + 1_000 });
    expect(await later.lookups.iterate(later.signal)).toBe(true);
    await later.lookups.settled();
    expect(await rowOf(fixture, killed.id)).toMatchObject({ status: 3 });
  });

  it('D6-20: when the database fails while a response is applied, the id is looked up again', async () => {
    const transaction = transactionOf(fixture);
    await park(transaction.id);
    let isAway = false;
    const statement = () => {
      if (isAway) throw new Error('the database is away');
    };
    const owner = askedOwner(async () => {
      isAway = true;
      return transaction;
    });
    const mirror = mirrorOn(watchedDb(fixture.db, { statement }));
    const first = lookupsOn(fixture, owner, { mirror, db: watchedDb(fixture.db, { statement }) });
    await first.lookups.iterate(first.signal);
    await first.lookups.settled();
    expect(await rowOf(fixture, transaction.id)).toBeUndefined();
    expect(await lookupsLeft(fixture)).toEqual([transaction.id]);
    const later = lookupsOn(fixture, owner, { nowMs: () => Date.now() + 3_600_000 });
    await later.lookups.iterate(later.signal);
    await later.lookups.settled();
    expect(await rowOf(fixture, transaction.id)).toMatchObject({ status: 3 });
  });
}

function rejectedBy(signal: AbortSignal): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>();
  signal.addEventListener('abort', () => reject(signal.reason));
  return promise;
}

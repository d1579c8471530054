import { expect, it } from 'vitest';
import type { Database } from '../../src/platform/database/open-database.ts';
import {
  ADMIN,
  assetAddress,
  delivery,
  eventsOf,
  newAsset,
  parkedOf,
  rowOf,
  transactionOf,
  USER,
  useMirror,
} from '../support/transactions/fixture.ts';

/** What parking and registering promise on every database. */
export function registrationContract(database: Database): void {
  const fixture = useMirror(database);

  it('D6-06: notifications of an unknown id are parked once, and applied when it is registered', async () => {
    const transaction = transactionOf(fixture);
    const { id } = transaction;
    const told = [delivery({ id, status: 3, second: 2 }), delivery({ id, status: 1 })];
    for (const topic of [ADMIN, USER, ADMIN] as const) await fixture.mirror.applyBatch(topic, told);
    expect(await parkedOf(fixture, id)).toBe(2);
    expect(await fixture.mirror.register(transaction)).toBe('registered');
    expect(await rowOf(fixture, id)).toMatchObject({ status: 3 });
    expect(await parkedOf(fixture, id)).toBe(0);
    expect((await eventsOf(fixture, id)).at(-1)).toMatchObject({ status: 3, correlation_id: `c-${id}-3-2` });
  });

  it('D6-13: registration is idempotent; with another node, collection or type it is a duplicate and changes nothing', async () => {
    const transaction = transactionOf(fixture);
    expect(await fixture.mirror.register(transaction)).toBe('registered');
    await fixture.mirror.applyBatch(ADMIN, [delivery({ id: transaction.id, status: 2, type: 2 })]);
    const row = await rowOf(fixture, transaction.id);
    expect(await fixture.mirror.register(transaction)).toBe('registered');
    const others = [
      { ...transaction, nodeId: fixture.nodeIds[1] },
      { ...transaction, type: 2 },
      { ...transaction, collection: 'otc_transactions' as const },
    ];
    for (const other of others) expect(await fixture.mirror.register(other)).toBe('duplicate');
    expect(await rowOf(fixture, transaction.id)).toEqual(row);
  });

  it('D6-20: a registration by the owner overrides one by mutation: row, asset and events move to its node', async () => {
    const [mine, other] = fixture.nodeIds;
    const [wrongAsset, asset] = [await newAsset(fixture, mine), await newAsset(fixture, other)];
    const wrong = transactionOf(fixture, { nodeId: mine, assetId: wrongAsset });
    const right = { ...wrong, nodeId: other, assetId: asset };
    await fixture.mirror.register(wrong);
    await fixture.mirror.applyBatch(ADMIN, [delivery({ id: wrong.id, status: 3, contract_address: '0xc' })]);
    expect(await assetAddress(fixture, wrongAsset)).toBe('0xc');
    await fixture.mirror.registerByOwner(right);
    expect(fixture.moved.filter((id) => id === wrong.id)).toHaveLength(1);
    expect(await rowOf(fixture, wrong.id)).toMatchObject({ node_id: other, registered_by: 'topic', status: 3 });
    expect(await assetAddress(fixture, wrongAsset)).toBe(null);
    expect(await assetAddress(fixture, asset)).toBe('0xc');
    const events = await eventsOf(fixture, wrong.id);
    expect(events).toMatchObject([{ node_id: other, status: 3, previous_status: null }]);
    expect(fixture.woken.at(-1)).toEqual({ nodeId: other, seq: BigInt(events[0]?.seq ?? 0) });
    await fixture.mirror.registerByOwner(right);
    await fixture.mirror.registerByOwner({ ...right, nodeId: mine });
    expect(fixture.moved.filter((id) => id === wrong.id)).toHaveLength(1);
    expect(await fixture.mirror.register(wrong)).toBe('duplicate');
    expect(await eventsOf(fixture, wrong.id)).toEqual(events);
  });

  it('D6-20: before any notification, the type given by the owner is the type of the transaction', async () => {
    const wrong = transactionOf(fixture, { type: 9 });
    await fixture.mirror.register(wrong);
    await fixture.mirror.registerByOwner({ ...wrong, type: 2 });
    expect(await rowOf(fixture, wrong.id)).toMatchObject({ type: 2, registered_type: 2, status: null });
    expect(await eventsOf(fixture, wrong.id)).toEqual([]);
  });

  it.each([
    ['the group of the right collection is first', [ADMIN, 'owner', USER]],
    ['the group of the wrong collection is first', [USER, 'owner', ADMIN]],
  ] as const)(
    'D6-06 D6-20: no notification is lost when the owner names another collection: %s',
    async (_name, steps) => {
      const wrong = transactionOf(fixture, { collection: 'otc_transactions' });
      await fixture.mirror.register(wrong);
      for (const step of steps) {
        if (step === 'owner') await fixture.mirror.registerByOwner({ ...wrong, collection: 'token_transactions' });
        else await fixture.mirror.applyBatch(step, [delivery({ id: wrong.id, status: 3 })]);
      }
      expect(await rowOf(fixture, wrong.id)).toMatchObject({ collection: 'token_transactions', status: 3 });
      expect(await parkedOf(fixture, wrong.id)).toBe(0);
    },
  );

  it('D6-06: a notification parked by the other group is deleted once it is applied', async () => {
    const transaction = transactionOf(fixture);
    await fixture.mirror.register(transaction);
    const told = [delivery({ id: transaction.id, status: 3 })];
    await fixture.mirror.applyBatch(USER, told);
    await fixture.mirror.applyBatch(ADMIN, told);
    await fixture.mirror.applyBatch(USER, told);
    expect(await parkedOf(fixture, transaction.id)).toBe(0);
  });
}

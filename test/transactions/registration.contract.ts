import { beforeAll, expect, it } from 'vitest';
import type { Database } from '../../src/platform/database/database.ts';
import {
  ADMIN,
  assetAddress,
  delivery,
  eventsOf,
  newAsset,
  parkedOf,
  rowOf,
  type Stand,
  standOn,
  transactionOf,
  USER,
} from '../support/transactions/stand.ts';

/** What parking and registering promise on every database. */
export function registrationContract(database: Database): void {
  let stand: Stand;

  beforeAll(async () => {
    stand = await standOn(database);
  });

  it('D6-06: notifications of an unknown id are parked once, and applied when it is registered', async () => {
    const transaction = transactionOf(stand);
    const { id } = transaction;
    const told = [delivery({ id, status: 3, second: 2 }), delivery({ id, status: 1 })];
    for (const topic of [ADMIN, USER, ADMIN] as const) await stand.mirror.applyBatch(topic, told);
    expect(await parkedOf(stand, id)).toBe(2);
    expect(await stand.mirror.register(transaction)).toBe('registered');
    expect(await rowOf(stand, id)).toMatchObject({ status: 3 });
    expect(await parkedOf(stand, id)).toBe(0);
    expect((await eventsOf(stand, id)).at(-1)).toMatchObject({ status: 3, correlation_id: `c-${id}-3-2` });
  });

  it('D6-13: registration is idempotent; with another node, collection or type it is a duplicate and changes nothing', async () => {
    const transaction = transactionOf(stand);
    expect(await stand.mirror.register(transaction)).toBe('registered');
    await stand.mirror.applyBatch(ADMIN, [delivery({ id: transaction.id, status: 2, type: 2 })]);
    const row = await rowOf(stand, transaction.id);
    expect(await stand.mirror.register(transaction)).toBe('registered');
    const others = [
      { ...transaction, nodeId: stand.nodeIds[1] },
      { ...transaction, type: 2 },
      { ...transaction, collection: 'otc_transactions' as const },
    ];
    for (const other of others) expect(await stand.mirror.register(other)).toBe('duplicate');
    expect(await rowOf(stand, transaction.id)).toEqual(row);
  });

  it('D6-20: a registration by the owner overrides one by mutation: row, asset and events move to its node', async () => {
    const [mine, other] = stand.nodeIds;
    const [wrongAsset, asset] = [await newAsset(stand, mine), await newAsset(stand, other)];
    const wrong = transactionOf(stand, { nodeId: mine, assetId: wrongAsset });
    const right = { ...wrong, nodeId: other, assetId: asset };
    await stand.mirror.register(wrong);
    await stand.mirror.applyBatch(ADMIN, [delivery({ id: wrong.id, status: 3, contract_address: '0xc' })]);
    expect(await assetAddress(stand, wrongAsset)).toBe('0xc');
    expect(await stand.mirror.registerByOwner(right)).toEqual({ moved: true });
    expect(await rowOf(stand, wrong.id)).toMatchObject({ node_id: other, registered_by: 'topic', status: 3 });
    expect(await assetAddress(stand, wrongAsset)).toBe(null);
    expect(await assetAddress(stand, asset)).toBe('0xc');
    const events = await eventsOf(stand, wrong.id);
    expect(events).toMatchObject([{ node_id: other, status: 3, previous_status: null }]);
    expect(stand.woken.at(-1)).toEqual({ nodeId: other, seq: BigInt(events[0]?.seq ?? 0) });
    expect(await stand.mirror.registerByOwner(right)).toEqual({ moved: false });
    expect(await stand.mirror.registerByOwner({ ...right, nodeId: mine })).toEqual({ moved: false });
    expect(await stand.mirror.register(wrong)).toBe('duplicate');
    expect(await eventsOf(stand, wrong.id)).toEqual(events);
  });

  it('D6-20: before any notification, the type given by the owner is the type of the transaction', async () => {
    const wrong = transactionOf(stand, { type: 9 });
    await stand.mirror.register(wrong);
    await stand.mirror.registerByOwner({ ...wrong, type: 2 });
    expect(await rowOf(stand, wrong.id)).toMatchObject({ type: 2, registered_type: 2, status: null });
    expect(await eventsOf(stand, wrong.id)).toEqual([]);
  });

  it.each([
    ['the group of the right collection is first', [ADMIN, 'owner', USER]],
    ['the group of the wrong collection is first', [USER, 'owner', ADMIN]],
  ] as const)(
    'D6-06 D6-20: no notification is lost when the owner names another collection: %s',
    async (_name, steps) => {
      const wrong = transactionOf(stand, { collection: 'otc_transactions' });
      await stand.mirror.register(wrong);
      for (const step of steps) {
        if (step === 'owner') await stand.mirror.registerByOwner({ ...wrong, collection: 'token_transactions' });
        else await stand.mirror.applyBatch(step, [delivery({ id: wrong.id, status: 3 })]);
      }
      expect(await rowOf(stand, wrong.id)).toMatchObject({ collection: 'token_transactions', status: 3 });
      expect(await parkedOf(stand, wrong.id)).toBe(0);
    },
  );

  it('D6-06: a notification parked by the other group is deleted once it is applied', async () => {
    const transaction = transactionOf(stand);
    await stand.mirror.register(transaction);
    const told = [delivery({ id: transaction.id, status: 3 })];
    await stand.mirror.applyBatch(USER, told);
    await stand.mirror.applyBatch(ADMIN, told);
    await stand.mirror.applyBatch(USER, told);
    expect(await parkedOf(stand, transaction.id)).toBe(0);
  });
}

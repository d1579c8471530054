import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Database } from '../../src/platform/database/open-database.ts';
import type { TransactionCollection } from '../../src/tables/transaction-content.ts';
import {
  ADMIN,
  assetAddress,
  delivery,
  eventsOf,
  type Fixture,
  newAsset,
  parkedOf,
  rowOf,
  type Told,
  transactionOf,
  USER,
  useMirror,
} from '../support/transactions/fixture.ts';

/** What a transaction comes to does not depend on how it was told, on any database. */
export function historyContract(database: Database, runs: number): void {
  const fixture = useMirror(database);

  it('3-03 D6-02 D6-03 D6-04 D6-06 D6-21: any order, batches and repeats of notifications end in the same state', async () => {
    await fc.assert(
      fc.asyncProperty(histories, async ({ collection, told, orders }) => {
        const ends: unknown[] = [];
        for (const order of orders) ends.push(await endOf(fixture, collection, told, order));
        expect(ends[1]).toEqual(ends[0]);
      }),
      { numRuns: runs },
    );
  });
}

interface Order {
  /** Indices of what was told: every one at least once. */
  at: number[];
  registeredAt: number;
  batchSize: number;
}

const anyTold = fc.record({
  status: fc.constantFrom(1, 2, 3, 4, 5),
  type: fc.constantFrom(1, 2),
  second: fc.constantFrom(0, 1),
  transaction_hash: fc.constantFrom('', '0x1'),
  contract_address: fc.constantFrom('', 'a', 'b'),
  gas_used: fc.constantFrom(0, 21),
  error: fc.constantFrom(null, 'reverted'),
});

const histories = fc
  .tuple(
    fc.constantFrom<TransactionCollection>('token_transactions', 'user_transactions', 'node_transactions'),
    fc.array(anyTold, { minLength: 1, maxLength: 5 }),
  )
  .chain(([collection, told]) => {
    const indices = told.map((_, at) => at);
    const order: fc.Arbitrary<Order> = fc
      .tuple(
        fc.shuffledSubarray(indices, { minLength: indices.length }),
        fc.subarray(indices),
        fc.nat(told.length),
        fc.integer({ min: 1, max: 3 }),
      )
      .map(([all, again, registeredAt, batchSize]) => ({ at: [...all, ...again], registeredAt, batchSize }));
    return fc.record({ collection: fc.constant(collection), told: fc.constant(told), orders: fc.tuple(order, order) });
  });

/** Tells one transaction's history in one order and gives what it comes to, ids apart. */
async function endOf(fixture: Fixture, collection: TransactionCollection, told: Omit<Told, 'id'>[], order: Order) {
  const assetId = await newAsset(fixture);
  const transaction = transactionOf(fixture, { id: randomUUID(), collection, assetId });
  const { id } = transaction;
  const deliveries = order.at.map((at) => delivery({ status: 1, ...told[at], id }));
  const send = async (some: typeof deliveries) => {
    for (let at = 0; at < some.length; at += order.batchSize) {
      const batch = some.slice(at, at + order.batchSize);
      for (const topic of [USER, ADMIN] as const) await fixture.mirror.applyBatch(topic, batch);
    }
  };
  await send(deliveries.slice(0, order.registeredAt));
  await fixture.mirror.register(transaction);
  await send(deliveries.slice(order.registeredAt));
  const events = await eventsOf(fixture, id);
  const row = await rowOf(fixture, id);
  return {
    row: { ...row, id: '', asset_id: '' },
    address: await assetAddress(fixture, assetId),
    parked: await parkedOf(fixture, id),
    last: events.at(-1) && { status: events.at(-1)?.status, shown: { ...events.at(-1)?.transaction, id: '' } },
    isMonotone: events.every(({ status, previous_status: previous }) => rank(status) >= rank(previous)),
  };
}

function rank(status: number | null): number {
  return status === null ? 0 : ([0, 1, 2, 4, 4, 3][status] ?? 0);
}

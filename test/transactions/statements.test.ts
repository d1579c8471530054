import { expect, it } from 'vitest';
import { scratchDatabase } from '../support/harness/databases.ts';
import {
  ADMIN,
  assetAddress,
  delivery,
  eventsOf,
  type Fixture,
  fixtureOn,
  mirrorOn,
  newAsset,
  rowOf,
  transactionOf,
  USER,
} from '../support/transactions/fixture.ts';
import { watchedDb } from '../support/transactions/watched-db.ts';

/** A mirror whose statements and commits are counted. */
function countedMirror({ db }: Fixture) {
  const taken = { statements: 0, commits: 0 };
  const statement = () => {
    taken.statements += 1;
  };
  const commit = () => {
    taken.commits += 1;
  };
  return { taken, counted: mirrorOn(watchedDb(db, { statement, commit })) };
}

it('6-01 D6-08: a batch of sixty transactions with assets of two nodes runs as many statements as a batch of six', async () => {
  await using database = await scratchDatabase();
  const fixture = await fixtureOn(database);
  const { counted, taken } = countedMirror(fixture);

  async function statementsOfBatch(size: number): Promise<number> {
    const assets: string[] = [];
    const batch = [];
    for (let n = 0; n < size; n += 1) {
      const nodeId = fixture.nodeIds[n % 2] ?? '';
      const assetId = await newAsset(fixture, nodeId);
      const transaction = transactionOf(fixture, { nodeId, assetId });
      await fixture.mirror.register(transaction);
      assets.push(assetId);
      batch.push(delivery({ id: transaction.id, status: 3, contract_address: `0x${n}` }));
      batch.push(delivery({ id: transactionOf(fixture).id, status: 1 }));
    }
    taken.statements = 0;
    await counted.applyBatch(ADMIN, batch);
    const { statements } = taken;
    for (const [n, assetId] of assets.entries()) expect(await assetAddress(fixture, assetId)).toBe(`0x${n}`);
    return statements;
  }

  expect(await statementsOfBatch(60)).toBe(await statementsOfBatch(6));
});

it('6-01: a group runs one statement for transactions that the other group applies, and takes no locks', async () => {
  await using database = await scratchDatabase();
  const fixture = await fixtureOn(database);
  const { counted, taken } = countedMirror(fixture);
  const transactions = Array.from({ length: 20 }, () => transactionOf(fixture));
  for (const transaction of transactions) await fixture.mirror.registerByOwner(transaction);
  const batch = transactions.map(({ id }) => delivery({ id, status: 2 }));
  await counted.applyBatch(USER, batch);
  expect(taken).toEqual({ statements: 1, commits: 0 });
  await counted.applyBatch(ADMIN, batch);
  for (const { id } of transactions) expect(await rowOf(fixture, id)).toMatchObject({ status: 2 });
});

it('6-01 D6-06: a batch of sixty registrations with parked notifications runs as many statements as a batch of six', async () => {
  await using database = await scratchDatabase();
  const fixture = await fixtureOn(database);
  const { counted, taken } = countedMirror(fixture);

  async function statementsOfBatch(size: number): Promise<number> {
    const transactions = Array.from({ length: size }, (_, n) =>
      transactionOf(fixture, { nodeId: fixture.nodeIds[n % 2] ?? '' }),
    );
    await fixture.mirror.applyBatch(
      ADMIN,
      // As a partition may have them once an outage is over: in any order.
      transactions.flatMap(({ id }) => [3, 1, 5, 2].map((status) => delivery({ id, status, second: status }))),
    );
    taken.statements = 0;
    await counted.registerAllByOwner([...transactions, ...transactions]);
    const { statements } = taken;
    for (const { id } of transactions) {
      expect((await eventsOf(fixture, id)).map(({ status }) => status)).toEqual([1, 2, 5, 3]);
    }
    return statements;
  }

  expect(await statementsOfBatch(60)).toBe(await statementsOfBatch(6));
});

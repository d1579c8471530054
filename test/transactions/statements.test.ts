import { expect, it } from 'vitest';
import { embeddedDatabase } from '../harness/databases.ts';
import { ADMIN, assetAddress, delivery, mirrorOn, newAsset, standOn, transactionOf } from './stand.ts';
import { watchedDb } from './watched-db.ts';

it('6-01 D6-08: a batch takes as many statements for sixty transactions with assets of two nodes, and parked ones, as for six', async () => {
  await using database = await embeddedDatabase();
  const stand = await standOn(database);
  let statements = 0;
  const count = () => {
    statements += 1;
  };
  const counted = mirrorOn(watchedDb(stand.db, { statement: count }));

  async function statementsOfBatch(size: number): Promise<number> {
    const assets: string[] = [];
    const batch = [];
    for (let n = 0; n < size; n += 1) {
      const nodeId = stand.nodeIds[n % 2] ?? '';
      const assetId = await newAsset(stand, nodeId);
      const transaction = transactionOf(stand, { nodeId, assetId });
      await stand.mirror.register(transaction);
      assets.push(assetId);
      batch.push(delivery({ id: transaction.id, status: 3, contract_address: `0x${n}` }));
      batch.push(delivery({ id: transactionOf(stand).id, status: 1 }));
    }
    statements = 0;
    await counted.applyBatch(ADMIN, batch);
    const taken = statements;
    for (const [n, assetId] of assets.entries()) expect(await assetAddress(stand, assetId)).toBe(`0x${n}`);
    return taken;
  }

  expect(await statementsOfBatch(60)).toBe(await statementsOfBatch(6));
});

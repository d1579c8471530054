import type { Db } from '../../platform/database/database.ts';
import { textArray } from '../../platform/database/row-sets.ts';
import { assetContractAddress } from './join.rules.ts';
import { stateOfRow } from './transactions.store.ts';

/**
 * Sets the contract address of each asset to the one that its transactions together give it, with at most three
 * statements. It locks the assets in the order of their ids before it reads their transactions, so that of two
 * concurrent calls the second sees what the first committed.
 */
export async function settleAssets(db: Db, assetIds: readonly (string | null)[]): Promise<void> {
  const ids = [...new Set(assetIds.filter((id) => id !== null))];
  if (ids.length === 0) return;
  const unscoped = db.unscoped('a batch has assets of several nodes');
  const assets = await unscoped.run((k) =>
    k
      .selectFrom('assets')
      .select(['id', 'node_id', 'contract_address', 'contract_settled'])
      .where('id', 'in', ids)
      .orderBy('id')
      .forUpdate(),
  );
  if (assets.length === 0) return;
  // A registration may name any asset; transactions of another tenant have no effect on this one.
  const rows = await unscoped.run((k) =>
    k
      .selectFrom('transactions')
      .innerJoin('assets', (join) =>
        join.onRef('assets.id', '=', 'transactions.asset_id').onRef('assets.node_id', '=', 'transactions.node_id'),
      )
      .selectAll('transactions')
      .where('assets.id', 'in', ids),
  );
  const rowsByAsset = Map.groupBy(rows, (row) => row.asset_id);
  const changed = assets.flatMap((asset) => {
    const address = assetContractAddress((rowsByAsset.get(asset.id) ?? []).map(stateOfRow));
    const isSame = address === undefined ? !asset.contract_settled : address === asset.contract_address;
    return isSame ? [] : [{ id: asset.id, address: address ?? null }];
  });
  if (changed.length === 0) return;
  const addresses = textArray(changed.map(({ address }) => address));
  await unscoped.raw(
    (sql) => sql`
      update assets a set contract_address = c.address, contract_settled = c.address is not null, updated_at = now()
      from unnest(${textArray(changed.map(({ id }) => id))}::uuid[], ${addresses}::text[]) as c (id, address)
      where a.id = c.id`,
  );
}

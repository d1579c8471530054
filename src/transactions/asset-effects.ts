import type { Db } from '../db.ts';
import { textArray } from '../lib/text-array.ts';
import { assetContractAddress } from './effects.rules.ts';
import { stateOfRow } from './transaction-rows.ts';

/**
 * Gives each asset the contract address that its transactions together say it has, with at most three statements. The
 * assets are locked before their transactions are read, in the order of their ids, so that of two that settle at once the
 * second sees the first.
 */
export async function settleAssets(db: Db, assetIds: readonly (string | null)[]): Promise<void> {
  const ids = [...new Set(assetIds.filter((id) => id !== null))];
  if (ids.length === 0) return;
  const door = db.unscoped('the assets of a batch belong to several nodes');
  const assets = await door.run((k) =>
    k
      .selectFrom('assets')
      .select(['id', 'node_id', 'contract_address', 'contract_settled'])
      .where('id', 'in', ids)
      .orderBy('id')
      .forUpdate(),
  );
  if (assets.length === 0) return;
  // Whoever registers a transaction may name any asset: those of another node say nothing of this one.
  const rows = await door.run((k) =>
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
  await door.raw(
    (sql) => sql`
      update assets a set contract_address = c.address, contract_settled = c.address is not null, updated_at = now()
      from unnest(${textArray(changed.map(({ id }) => id))}::uuid[], ${addresses}::text[]) as c (id, address)
      where a.id = c.id`,
  );
}

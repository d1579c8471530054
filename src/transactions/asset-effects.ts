import type { Db } from '../db.ts';
import { assetContractAddress } from './effects.rules.ts';
import { stateOfRow } from './transaction-rows.ts';

/**
 * Gives each asset the contract address that its transactions together say it has. The asset is locked before its
 * transactions are read, so that of two that settle at once the second sees the first.
 */
export async function settleAssets(db: Db, assetIds: readonly (string | null)[]): Promise<void> {
  const ids = [...new Set(assetIds.filter((id) => id !== null))].sort();
  const door = db.unscoped('the assets of a batch belong to several nodes');
  for (const assetId of ids) {
    const [asset] = await door.run((k) =>
      k
        .selectFrom('assets')
        .select(['node_id', 'contract_address', 'contract_settled'])
        .where('id', '=', assetId)
        .forUpdate(),
    );
    if (!asset) continue;
    // Whoever registers a transaction may name any asset: those of another node say nothing of this one.
    const rows = await door.run((k) =>
      k.selectFrom('transactions').selectAll().where('asset_id', '=', assetId).where('node_id', '=', asset.node_id),
    );
    const address = assetContractAddress(rows.map(stateOfRow));
    if (address === undefined ? !asset.contract_settled : address === asset.contract_address) continue;
    await door.run((k) =>
      k
        .updateTable('assets')
        .set((eb) => ({
          contract_address: address ?? null,
          contract_settled: address !== undefined,
          updated_at: eb.fn<string>('now'),
        }))
        .where('id', '=', assetId),
    );
  }
}

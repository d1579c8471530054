import type { Db } from '../../platform/database/database.ts';
import { textArray } from '../../platform/database/sql-state.ts';
import { compareKeys, type OrderKey, type TransactionState } from './join.rules.ts';
import { stateOfRow } from './transaction-store.ts';
import { CREATE_TOKENIZATION } from './type-codes.rules.ts';

/** The contract address that a transaction gives to its asset, and its place among the transactions of that asset. */
interface AssetEffect {
  readonly assetContractAddress: string;
  readonly statusKey: OrderKey;
  readonly contractAddressKey: OrderKey;
}

/**
 * What a transaction does to its asset: a CreateTokenization of which a Done was seen gives it the contract address, if it has
 * one; else `undefined`. A later Error does not take it back. A function of the joined state alone, which a notification of
 * another type can end: keep no memory of an effect, ask `assetContractAddress` of all the asset's transactions.
 */
export function effectsOf(state: TransactionState): AssetEffect | undefined {
  const { collection, type, doneSeen, contractAddress, statusKey, contractAddressKey } = state;
  if (collection !== 'token_transactions' || type !== CREATE_TOKENIZATION) return undefined;
  if (!doneSeen || contractAddress === '') return undefined;
  return { assetContractAddress: contractAddress, statusKey, contractAddressKey };
}

/**
 * The contract address that an asset has from its transactions: of those with an effect, the one with the highest order key,
 * then the highest contract address key, which names one address. `undefined` when none has an effect.
 */
export function assetContractAddress(transactions: Iterable<TransactionState>): string | undefined {
  let best: AssetEffect | undefined;
  for (const state of transactions) {
    const effect = effectsOf(state);
    if (effect !== undefined && (best === undefined || compareEffects(effect, best) > 0)) best = effect;
  }
  return best?.assetContractAddress;
}

function compareEffects(a: AssetEffect, b: AssetEffect): number {
  return compareKeys(a.statusKey, b.statusKey) || compareKeys(a.contractAddressKey, b.contractAddressKey);
}

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

import type { TransactionState } from './join.rules.ts';
import { compareKeys, type OrderKey } from './order-key.rules.ts';
import { CREATE_TOKENIZATION } from './type-codes.rules.ts';

/** The contract address that a transaction gives to its asset, and its place among the transactions of that asset. */
export interface AssetEffect {
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

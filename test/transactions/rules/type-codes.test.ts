import { describe, expect, it } from 'vitest';
import {
  collectionsOf,
  isTransactionCollection,
  statusName,
  topicOf,
  typeFlagged,
  typeName,
} from '../../../src/features/transactions/type-codes.rules.ts';
import {
  TRANSACTION_COLLECTIONS,
  type TransactionCollection,
  type TransactionStatus,
} from '../../../src/tables/transaction-content.ts';

describe('type codes', () => {
  it.each<[TransactionCollection, number, string | null]>([
    ['token_transactions', 1, 'CreateTokenization'],
    ['token_transactions', 2, 'Burn'],
    ['token_transactions', 3, null],
    ['node_transactions', 1, 'WithdrawType'],
    ['node_transactions', 21, 'SendKycToken'],
    ['node_transactions', 33, 'ExecuteDiamondCut'],
    ['node_transactions', 2, null],
    ['currency_token_transactions', 1, 'DeployCurrencyToken'],
    ['currency_token_transactions', 2, 'MintCurrencyToken'],
    ['currency_token_transactions', 3, 'SendCurrencyToken'],
    ['currency_token_transactions', 4, null],
    ['user_transactions', 1, 'PurchaseOnPrimaryMarket'],
    ['user_transactions', 10, 'Withdraw'],
    ['user_transactions', 2, null],
    ['secondary_market_transactions', 1, 'OpenToSecondaryMarket'],
    ['secondary_market_transactions', 2, null],
    ['otc_transactions', 1, 'OpenToOtc'],
    ['otc_transactions', -1, null],
  ])('2.7-09, D6-01: %s %i is named %s', (collection, type, name) => expect(typeName(collection, type)).toBe(name));

  it.each<[TransactionCollection, number | null]>([
    ['token_transactions', 22],
    ['node_transactions', 60],
    ['currency_token_transactions', null],
    ['user_transactions', 10],
    ['secondary_market_transactions', null],
    ['otc_transactions', null],
  ])('D6-01: type codes of %s below 1 and above %s are flagged', (collection, count) => {
    expect([-1, 0, 1].map((type) => typeFlagged(collection, type))).toEqual([true, true, false]);
    expect(typeFlagged(collection, count ?? 2147483647)).toBe(false);
    if (count !== null) expect(typeFlagged(collection, count + 1)).toBe(true);
  });

  it('2.7-09: there are six collections, and each has one topic whose consumers apply it', () => {
    expect(TRANSACTION_COLLECTIONS).toHaveLength(6);
    expect(collectionsOf('transactions.admin')).toEqual([
      'token_transactions',
      'node_transactions',
      'currency_token_transactions',
    ]);
    expect(collectionsOf('transactions.user')).toEqual([
      'user_transactions',
      'secondary_market_transactions',
      'otc_transactions',
    ]);
    expect(topicOf('otc_transactions')).toBe('transactions.user');
    expect(['otc_transactions', 'OTC_TRANSACTIONS', 'constructor', ''].map(isTransactionCollection)).toEqual([
      true,
      false,
      false,
      false,
    ]);
  });

  it('3-01: the statuses have the names of the specification', () => {
    const codes: readonly TransactionStatus[] = [1, 2, 3, 4, 5];
    expect(codes.map(statusName)).toEqual(['Started', 'InProgress', 'Done', 'Error', 'PendingReceipt']);
  });
});

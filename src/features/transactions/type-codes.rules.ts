import {
  STATUS,
  TRANSACTION_COLLECTIONS,
  type TransactionCollection,
  type TransactionStatus,
} from '../../tables/transaction-content.ts';

/** Returns the name of a status. */
export function statusName(status: TransactionStatus): keyof typeof STATUS {
  return STATUS_NAMES[status];
}

const STATUS_NAMES = Object.fromEntries(Object.entries(STATUS).map(([name, status]) => [status, name])) as Readonly<
  Record<TransactionStatus, keyof typeof STATUS>
>;

/** Checks whether a number is the code of a status. */
export function isStatus(code: number): code is TransactionStatus {
  return Object.hasOwn(STATUS_NAMES, code);
}

/** A topic of notifications (docs/contract.md, 6-01), without the prefix of the installation. */
export type TransactionTopic = 'transactions.admin' | 'transactions.user';

/** The type in token_transactions whose Done gives an asset its contract address. */
export const CREATE_TOKENIZATION = 1;

interface CollectionFacts {
  readonly topic: TransactionTopic;
  /** The number of types, which count from 1; null if it is unknown. */
  readonly typeCount: number | null;
  readonly typeNames: Readonly<Record<number, string>>;
}

// The collections (docs/contract.md, 2.7-09 and 6-01).
const collections = {
  token_transactions: {
    topic: 'transactions.admin',
    typeCount: 22,
    typeNames: { [CREATE_TOKENIZATION]: 'CreateTokenization', 2: 'Burn' },
  },
  node_transactions: {
    topic: 'transactions.admin',
    typeCount: 60,
    typeNames: { 1: 'WithdrawType', 21: 'SendKycToken', 33: 'ExecuteDiamondCut' },
  },
  currency_token_transactions: {
    topic: 'transactions.admin',
    typeCount: null,
    typeNames: { 1: 'DeployCurrencyToken', 2: 'MintCurrencyToken', 3: 'SendCurrencyToken' },
  },
  user_transactions: {
    topic: 'transactions.user',
    typeCount: 10,
    typeNames: { 1: 'PurchaseOnPrimaryMarket', 10: 'Withdraw' },
  },
  secondary_market_transactions: {
    topic: 'transactions.user',
    typeCount: null,
    typeNames: { 1: 'OpenToSecondaryMarket' },
  },
  otc_transactions: { topic: 'transactions.user', typeCount: null, typeNames: { 1: 'OpenToOtc' } },
} as const satisfies Record<TransactionCollection, CollectionFacts>;

/** Checks whether a text is the name of a collection. */
export function isTransactionCollection(text: string): text is TransactionCollection {
  return Object.hasOwn(collections, text);
}

/** Returns the name of a type, or null if it has none (docs/contract.md, 2.7-09). */
export function typeName(collection: TransactionCollection, type: number): string | null {
  const { typeNames }: CollectionFacts = collections[collection];
  return typeNames[type] ?? null;
}

/**
 * Checks whether a type code is outside its collection's known range. It is stored and shown nevertheless, and flagged
 * for an operator. Types count from 1; there is no upper bound if the number of types is unknown.
 */
export function typeFlagged(collection: TransactionCollection, type: number): boolean {
  const { typeCount }: CollectionFacts = collections[collection];
  return type < 1 || (typeCount !== null && type > typeCount);
}

/** The collections whose number of types is known, with that number. */
export const TYPE_COUNTS = TRANSACTION_COLLECTIONS.flatMap((name) => {
  const { typeCount }: CollectionFacts = collections[name];
  return typeCount === null ? [] : [[name, typeCount] as const];
});

/** Returns the topic whose consumer applies the notifications of a collection. */
export function topicOf(collection: TransactionCollection): TransactionTopic {
  return collections[collection].topic;
}

/** Returns the other of the two notification topics. */
export function otherTopic(topic: TransactionTopic): TransactionTopic {
  return topic === 'transactions.admin' ? 'transactions.user' : 'transactions.admin';
}

/** Returns the collections whose notifications the consumer of a topic applies. */
export function collectionsOf(topic: TransactionTopic): readonly TransactionCollection[] {
  return TRANSACTION_COLLECTIONS.filter((collection) => topicOf(collection) === topic);
}

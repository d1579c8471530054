/** Status codes of specification section 3. */
export type TransactionStatus = 1 | 2 | 3 | 4 | 5;

/** A status by its name in the specification. */
export const STATUS = { Started: 1, InProgress: 2, Done: 3, Error: 4, PendingReceipt: 5 } as const;

const statusNames: Readonly<Record<TransactionStatus, keyof typeof STATUS>> = {
  1: 'Started',
  2: 'InProgress',
  3: 'Done',
  4: 'Error',
  5: 'PendingReceipt',
};

/** The status's name in specification section 3: `Started`, `InProgress`, `Done`, `Error`, `PendingReceipt`. */
export function statusName(status: TransactionStatus): keyof typeof STATUS {
  return statusNames[status];
}

/** Returns the status of a code that this service has stored itself. @throws Error for any other code. */
export function statusOfCode(code: number): TransactionStatus {
  switch (code) {
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
      return code;
    default:
      throw new Error(`${code} is no transaction status`);
  }
}

/** Topics that carry notifications (specification section 6); a deployment's prefix comes before them. */
export type TransactionTopic = 'transactions.admin' | 'transactions.user';

/** The token_transactions type whose Done gives an asset its contract address. */
export const CREATE_TOKENIZATION = 1;

interface CollectionFacts {
  readonly topic: TransactionTopic;
  /** How many types the specification counts, numbered from 1; null where it gives no count. */
  readonly typeCount: number | null;
  readonly typeNames: Readonly<Record<number, string>>;
}

// Specification sections 2.7 and 6.
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
} as const satisfies Record<string, CollectionFacts>;

export type TransactionCollection = keyof typeof collections;

/** The six collections that a transaction id can belong to. */
export const TRANSACTION_COLLECTIONS = Object.keys(collections) as readonly TransactionCollection[];

/** Whether a text names one of the six collections. */
export function isTransactionCollection(text: string): text is TransactionCollection {
  return Object.hasOwn(collections, text);
}

/** The type's name where specification section 2.7 gives one, else null. */
export function typeName(collection: TransactionCollection, type: number): string | null {
  const { typeNames }: CollectionFacts = collections[collection];
  return typeNames[type] ?? null;
}

/**
 * Whether the code is outside the collection's known range: stored and shown all the same, for an operator to look at.
 * Types count from 1; a collection whose number of types the specification does not give has no upper end.
 */
export function typeFlagged(collection: TransactionCollection, type: number): boolean {
  const { typeCount }: CollectionFacts = collections[collection];
  return type < 1 || (typeCount !== null && type > typeCount);
}

/** The topic whose consumers apply the collection's notifications. */
export function topicOf(collection: TransactionCollection): TransactionTopic {
  return collections[collection].topic;
}

/** The topic that carries the notifications of all other collections. */
export function otherTopic(topic: TransactionTopic): TransactionTopic {
  return topic === 'transactions.admin' ? 'transactions.user' : 'transactions.admin';
}

/** The collections whose notifications the topic's consumers apply. */
export function collectionsOf(topic: TransactionTopic): readonly TransactionCollection[] {
  return TRANSACTION_COLLECTIONS.filter((collection) => topicOf(collection) === topic);
}

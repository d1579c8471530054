/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
/** The collection of a transaction; it determines the meaning of the type code. */
export type TransactionCollection =
  /** Transactions of currency tokens. */
  | 'CURRENCY_TOKEN_TRANSACTIONS'
  /** Transactions of the tenant (node) itself. */
  | 'NODE_TRANSACTIONS'
  /** Transactions of users over the counter. */
  | 'OTC_TRANSACTIONS'
  /** Transactions of users on the secondary market. */
  | 'SECONDARY_MARKET_TRANSACTIONS'
  /** Transactions of tokenized assets. */
  | 'TOKEN_TRANSACTIONS'
  /** Transactions of users on the primary market. */
  | 'USER_TRANSACTIONS';

/** Filters transactions; all given members must match. */
export type TransactionFilter = {
  /** The collection of the transaction. */
  collection?: TransactionCollection | null | undefined;
  /** Whether both DONE and ERROR were reported. */
  conflict?: boolean | null | undefined;
  /** With exactly this error. */
  error?: string | null | undefined;
  /** Whether the type code is unknown in the collection. */
  flagged?: boolean | null | undefined;
  /** With exactly this id or transaction hash. */
  idOrHash?: string | null | undefined;
  /** With an id or transaction hash that begins with this text. */
  search?: string | null | undefined;
  /** With this status. */
  status?: TransactionStatus | null | undefined;
  /** With this type code. */
  type?: number | null | undefined;
  /** Last updated at or after this time, by the clock of the chain processor. */
  updatedSince?: string | null | undefined;
  /** Last updated before this time, by the same clock. */
  updatedUntil?: string | null | undefined;
};

/** The status of a transaction. */
export type TransactionStatus =
  /** It is confirmed on the chain. Final. */
  | 'DONE'
  /** It failed. Final. */
  | 'ERROR'
  /** The chain processor is preparing or signing it. */
  | 'IN_PROGRESS'
  /** It was broadcast and waits for its receipt. */
  | 'PENDING_RECEIPT'
  /** The chain processor has queued it. */
  | 'STARTED';

export type TransactionUpdatesSubscriptionVariables = Exact<{
  after?: string | null | undefined;
  filter?: TransactionFilter | null | undefined;
}>;


export type TransactionUpdatesSubscription = { transactionUpdates: { cursor: string, previousStatus: TransactionStatus | null, correlationId: string | null, transaction: { id: string, collection: TransactionCollection, type: number, typeName: string | null, status: TransactionStatus | null, conflict: boolean, transactionHash: string, contractAddress: string, gasUsed: string, error: string | null, createdAt: string | null, updatedAt: string | null } } };

export type TransactionStateSubscriptionVariables = Exact<{
  id: string | number;
}>;


export type TransactionStateSubscription = { transaction: { id: string, collection: TransactionCollection, type: number, typeName: string | null, status: TransactionStatus | null, conflict: boolean, transactionHash: string, contractAddress: string, gasUsed: string, error: string | null, createdAt: string | null, updatedAt: string | null } };

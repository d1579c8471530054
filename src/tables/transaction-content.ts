/** The names of the collections of transactions (docs/contract.md, 2.7-09); a transaction belongs to exactly one. */
export const TRANSACTION_COLLECTIONS = [
  'token_transactions',
  'node_transactions',
  'currency_token_transactions',
  'user_transactions',
  'secondary_market_transactions',
  'otc_transactions',
] as const;

export type TransactionCollection = (typeof TRANSACTION_COLLECTIONS)[number];

/** The status codes by name (docs/contract.md, 3-01). */
export const STATUS = { Started: 1, InProgress: 2, Done: 3, Error: 4, PendingReceipt: 5 } as const;

export type TransactionStatus = (typeof STATUS)[keyof typeof STATUS];

/** A transaction as readers see it and as the event log stores it: its state right after an event. */
export interface TransactionSnapshot {
  id: string;
  collection: TransactionCollection;
  type: number;
  status: TransactionStatus | null;
  transaction_hash: string;
  contract_address: string;
  /** A decimal string, because it can be any uint64. */
  gas_used: string;
  error: string | null;
  conflict: boolean;
  /** ISO 8601 in UTC with milliseconds; null before any notification. */
  created_at: string | null;
  /** ISO 8601 in UTC with milliseconds; null before any notification. */
  updated_at: string | null;
}

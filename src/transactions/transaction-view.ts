import type { TransactionSnapshot } from './transaction-rows.ts';

/** A transaction as readers are shown it: the members of a snapshot, and no others. */
export type TransactionView = {
  [Name in keyof TransactionSnapshot as string extends Name ? never : Name]: TransactionSnapshot[Name];
};

/** The transaction in a row of the event log, which this service has written itself. */
export function viewOfLogged(transaction: Record<string, unknown>): TransactionView {
  return transaction as TransactionSnapshot;
}

import type { Selectable } from 'kysely';
import type { LoggedEvent } from '../../events/streams/event-log.ts';
import { instantToIsoMillis } from '../../lib/instants.ts';
import type { Tables } from '../../tables/tables.ts';
import { hasConflict, NO_KEY, type TransactionState } from './join.rules.ts';
import type { ReceivedTime } from './notification.input.ts';
import { isTransactionCollection, STATUS, statusOfCode, type TransactionStatus } from './type-codes.rules.ts';

/** A registered transaction as the table has it. */
export type TransactionRow = Selectable<Tables['transactions']>;

/** A transaction as the event log keeps it: as of one change. */
export interface TransactionSnapshot extends Record<string, unknown> {
  id: string;
  collection: string;
  type: number;
  status: TransactionStatus | null;
  transaction_hash: string;
  contract_address: string;
  /** A decimal string: it can be any uint64. */
  gas_used: string;
  error: string | null;
  conflict: boolean;
  /** ISO 8601 in UTC with milliseconds. */
  created_at: string | null;
  updated_at: string | null;
}

/** The join state that a row keeps. */
export function stateOfRow(row: TransactionRow): TransactionState {
  const { collection } = row;
  if (!isTransactionCollection(collection)) throw new Error(`the row ${row.id} has no collection of ours`);
  return {
    collection,
    registeredType: row.registered_type,
    type: row.type,
    status: row.status === null ? null : statusOfCode(row.status),
    error: row.error,
    createdAt: receivedTime(row.created_text, row.created_seconds, row.created_nanos),
    updatedAt: receivedTime(row.updated_text, row.updated_seconds, row.updated_nanos),
    statusKey: row.status_key ?? NO_KEY,
    transactionHash: row.transaction_hash,
    transactionHashKey: row.transaction_hash_key ?? NO_KEY,
    contractAddress: row.contract_address,
    contractAddressKey: row.contract_address_key ?? NO_KEY,
    gasUsed: BigInt(row.gas_used),
    gasUsedKey: row.gas_used_key ?? NO_KEY,
    doneSeen: row.done_seen,
    errorSeen: row.error_seen,
  };
}

/** What readers are shown of a transaction. */
export function snapshotOf(id: string, state: TransactionState): TransactionSnapshot {
  return {
    id,
    collection: state.collection,
    type: state.type,
    status: state.status,
    transaction_hash: state.transactionHash,
    contract_address: state.contractAddress,
    gas_used: state.gasUsed.toString(),
    error: state.error,
    conflict: hasConflict(state),
    created_at: state.createdAt && instantToIsoMillis(state.createdAt),
    updated_at: state.updatedAt && instantToIsoMillis(state.updatedAt),
  };
}

/** The same of a row. */
export function snapshotOfRow(row: TransactionRow): TransactionSnapshot {
  return snapshotOf(row.id, stateOfRow(row));
}

function receivedTime(text: string | null, seconds: string | null, nanos: number | null): ReceivedTime | null {
  return text === null || seconds === null || nanos === null ? null : { text, seconds: BigInt(seconds), nanos };
}

/** A registered transaction and its join. */
export interface RegisteredTransaction {
  id: string;
  nodeId: string;
  assetId: string | null;
  /** Registered by mutation: its owner may still say that it is of another node or collection. */
  isProvisional: boolean;
  state: TransactionState;
}

/** Returns a registered transaction out of its row. */
export function registeredOfRow(row: TransactionRow): RegisteredTransaction {
  const { id, node_id: nodeId, asset_id: assetId, registered_by: by } = row;
  return { id, nodeId, assetId, isProvisional: by === 'mutation', state: stateOfRow(row) };
}

/** A transaction as readers are shown it: the members of a snapshot, and no others. */
export type TransactionView = {
  [Name in keyof TransactionSnapshot as string extends Name ? never : Name]: TransactionSnapshot[Name];
};

/** The transaction in a row of the event log, which this service has written itself. */
export function viewOfLogged(transaction: Record<string, unknown>): TransactionView {
  return transaction as TransactionSnapshot;
}

/** A transaction as it is and as it becomes; ends with a final state, Done or Error. */
export class TransactionStates implements AsyncIterableIterator<TransactionView, undefined> {
  #state: TransactionView;
  #isTaken = false;
  readonly #follow: () => AsyncIterator<LoggedEvent>;
  #changes: AsyncIterator<LoggedEvent> | undefined;

  /** `follow` gives the changes after `current`; it is called only if more can come. */
  constructor(current: TransactionView, follow: () => AsyncIterator<LoggedEvent>) {
    this.#state = current;
    this.#follow = follow;
  }

  async next(): Promise<IteratorResult<TransactionView, undefined>> {
    if (!this.#isTaken) {
      this.#isTaken = true;
      if (!isFinal(this.#state)) this.#changes = this.#follow();
      return { done: false, value: this.#state };
    }
    const change = isFinal(this.#state) ? undefined : await this.#changes?.next();
    if (change === undefined || change.done) return this.return();
    this.#state = viewOfLogged(change.value.transaction);
    return { done: false, value: this.#state };
  }

  async return(): Promise<IteratorResult<TransactionView, undefined>> {
    await this.#changes?.return?.();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}

function isFinal({ status }: TransactionView): boolean {
  return status === STATUS.Done || status === STATUS.Error;
}

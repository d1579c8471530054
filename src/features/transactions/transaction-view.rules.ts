import type { Selectable } from 'kysely';
import type { EventStream } from '../../events/streams/event-streams.ts';
import { instantToIsoMillis } from '../../lib/instants.ts';
import type { Tables } from '../../tables/tables.ts';
import { STATUS, type TransactionSnapshot } from '../../tables/transaction-content.ts';
import { hasConflict, NO_KEY, type TransactionState } from './join.rules.ts';
import type { ReceivedTime } from './notification.input.ts';

/** A row of the table of registered transactions. */
export type TransactionRow = Selectable<Tables['transactions']>;

/** Returns the join state that a row stores. */
export function stateOfRow(row: TransactionRow): TransactionState {
  return {
    collection: row.collection,
    registeredType: row.registered_type,
    type: row.type,
    status: row.status,
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

/** Returns a transaction's state as readers see it. */
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

function receivedTime(text: string | null, seconds: string | null, nanos: number | null): ReceivedTime | null {
  return text === null || seconds === null || nanos === null ? null : { text, seconds: BigInt(seconds), nanos };
}

/** A registered transaction with its join state. */
export interface RegisteredTransaction {
  id: string;
  nodeId: string;
  assetId: string | null;
  /** Whether the registration was made by a mutation, so that the owner may still change its tenant and collection. */
  isProvisional: boolean;
  state: TransactionState;
}

/** Builds a registered transaction from its row. */
export function registeredOfRow(row: TransactionRow): RegisteredTransaction {
  const { id, node_id: nodeId, asset_id: assetId, registered_by: registeredBy } = row;
  return { id, nodeId, assetId, isProvisional: registeredBy === 'mutation', state: stateOfRow(row) };
}

/**
 * Iterates over the states of a transaction: the current one, then each later one. It ends after a final state, Done or
 * Error.
 */
export class TransactionStates implements AsyncIterableIterator<TransactionSnapshot, undefined> {
  #state: TransactionSnapshot;
  #isTaken = false;
  #isOwn = true;
  readonly #changes: EventStream | undefined;

  /** @param follow Returns the events after `current`. It is called only when `current` is not final. */
  constructor(current: TransactionSnapshot, follow: () => EventStream) {
    this.#state = current;
    this.#changes = isFinal(current) ? undefined : follow();
  }

  get signal(): AbortSignal | undefined {
    return this.#changes?.signal;
  }

  /** Checks whether the state that was taken last is not shared with other subscribers. */
  isOwn(): boolean {
    return this.#isOwn;
  }

  async next(): Promise<IteratorResult<TransactionSnapshot, undefined>> {
    if (!this.#isTaken) {
      this.#isTaken = true;
      return { done: false, value: this.#state };
    }
    const change = isFinal(this.#state) ? undefined : await this.#changes?.next();
    if (change === undefined || change.done) return this.return();
    this.#state = change.value.transaction;
    this.#isOwn = this.#changes?.isOwn(change.value) === true;
    return { done: false, value: this.#state };
  }

  async return(): Promise<IteratorResult<TransactionSnapshot, undefined>> {
    await this.#changes?.return();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}

function isFinal({ status }: TransactionSnapshot): boolean {
  return status === STATUS.Done || status === STATUS.Error;
}

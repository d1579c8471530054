import type { Insertable, Selectable } from 'kysely';
import type { Tables } from '../entities.ts';
import { instantToIsoMillis } from '../lib/iso-instant.ts';
import { hasConflict, type TransactionState } from './join.rules.ts';
import type { ReceivedTime } from './notification.input.ts';
import { NO_KEY } from './order-key.rules.ts';
import { isTransactionCollection, type TransactionStatus } from './type-codes.rules.ts';

export type TransactionRow = Selectable<Tables['transactions']>;
export type NewTransactionRow = Insertable<Tables['transactions']>;

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
    status: statusOf(row.status),
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

/** The columns of a join state. */
export function columnsOfState(state: TransactionState) {
  return {
    collection: state.collection,
    registered_type: state.registeredType,
    type: state.type,
    status: state.status,
    error: state.error,
    created_text: state.createdAt?.text ?? null,
    created_seconds: state.createdAt?.seconds.toString() ?? null,
    created_nanos: state.createdAt?.nanos ?? null,
    updated_text: state.updatedAt?.text ?? null,
    updated_seconds: state.updatedAt?.seconds.toString() ?? null,
    updated_nanos: state.updatedAt?.nanos ?? null,
    status_key: state.statusKey,
    transaction_hash: state.transactionHash,
    transaction_hash_key: state.transactionHashKey,
    contract_address: state.contractAddress,
    contract_address_key: state.contractAddressKey,
    gas_used: state.gasUsed.toString(),
    gas_used_key: state.gasUsedKey,
    done_seen: state.doneSeen,
    error_seen: state.errorSeen,
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

function receivedTime(text: string | null, seconds: string | null, nanos: number | null): ReceivedTime | null {
  return text === null || seconds === null || nanos === null ? null : { text, seconds: BigInt(seconds), nanos };
}

function statusOf(status: number | null): TransactionStatus | null {
  switch (status) {
    case null:
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
      return status;
    default:
      throw new Error(`${status} is no transaction status`);
  }
}

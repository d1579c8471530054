import { instantToIsoMillis } from '../../lib/instants.ts';
import {
  STATUS,
  type TransactionCollection,
  type TransactionSnapshot,
  type TransactionStatus,
} from '../../tables/transaction-content.ts';
import type { Notification, ReceivedTime } from './notification.input.ts';
import { CREATE_TOKENIZATION } from './type-codes.rules.ts';

/**
 * The sort key of a notification within its transaction: lower-case hexadecimal text that compares the same in
 * JavaScript (`<`) and PostgreSQL (`collate "C"`). Two notifications have the same key only if all their known members
 * are equal.
 */
export type OrderKey = string;

/** The key that stands for no notification; lower than every other. */
export const NO_KEY: OrderKey = '';

/**
 * Returns the order key of a notification: the rank of its status, `updated_at`, `created_at` (as instants), Done above
 * Error, then the known members in the order of clauses 2.7-01 to 2.7-07. Texts compare by their UTF-8 bytes and end
 * with a zero byte, which no known text contains, so that a text is below every longer one that it begins; a null error
 * is below every text.
 */
export function orderKeyOf({
  updatedAt,
  createdAt,
  status,
  type,
  transactionHash,
  contractAddress,
  gasUsed,
  error,
}: Notification): OrderKey {
  return Buffer.concat([
    Buffer.of(RANKS[status]),
    instantBytes(updatedAt),
    instantBytes(createdAt),
    Buffer.of(status === STATUS.Done ? 1 : 0),
    signedBytes(BigInt(type)),
    Buffer.from(`${transactionHash}\0${contractAddress}\0`),
    unsignedBytes(gasUsed),
    Buffer.from(error === null ? '\0' : `\u0001${error}\0`),
    Buffer.from(`${createdAt.text}\0${updatedAt.text}\0`),
  ]).toString('hex');
}

/**
 * Compares two order keys; returns a negative number when `a` is lower, 0 when they are equal, a positive one when `a`
 * is higher.
 */
export function compareKeys(a: OrderKey, b: OrderKey): number {
  return a < b ? -1 : Number(a > b);
}

/** The progress that each status stands for; Done and Error share the highest rank. */
const RANKS: Readonly<Record<TransactionStatus, number>> = {
  [STATUS.Started]: 1,
  [STATUS.InProgress]: 2,
  [STATUS.PendingReceipt]: 3,
  [STATUS.Done]: 4,
  [STATUS.Error]: 4,
};

function instantBytes(time: ReceivedTime): Buffer {
  return Buffer.concat([signedBytes(time.seconds), unsignedBytes(BigInt(time.nanos))]);
}

function unsignedBytes(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(value);
  return bytes;
}

// The offset makes negative numbers sort below positive ones.
function signedBytes(value: bigint): Buffer {
  return unsignedBytes(value + 2n ** 63n);
}

/** The facts about a transaction that come from its registration. */
interface Registration {
  readonly collection: TransactionCollection;
  readonly registeredType: number;
}

/** The state of a transaction, computed from all its notifications. Every member is a plain column. */
export interface TransactionState extends Registration {
  /**
   * `type` to `updatedAt` come from the highest notification, whose key is `statusKey`; without one, `type` is the
   * registered type.
   */
  readonly type: number;
  readonly status: TransactionStatus | null;
  readonly error: string | null;
  readonly createdAt: ReceivedTime | null;
  readonly updatedAt: ReceivedTime | null;
  readonly statusKey: OrderKey;
  /** Each value comes from the highest notification that has one, and is stored with that notification's key. */
  readonly transactionHash: string;
  readonly transactionHashKey: OrderKey;
  readonly contractAddress: string;
  readonly contractAddressKey: OrderKey;
  readonly gasUsed: bigint;
  readonly gasUsedKey: OrderKey;
  /** Whether any notification, not only the highest, had the status Done. */
  readonly doneSeen: boolean;
  /** Whether any notification, not only the highest, had the status Error. */
  readonly errorSeen: boolean;
}

interface Joined {
  readonly state: TransactionState;
  /** Whether the state must be saved; if not, `state` is the same object that was given. */
  readonly changed: boolean;
  /** Whether something differs that a reader can see, and not only a key. */
  readonly visible: boolean;
  readonly previousStatus: TransactionStatus | null;
}

/** Returns the state of a registered transaction without notifications: the bottom of the join. */
export function emptyState({ collection, registeredType }: Registration): TransactionState {
  return {
    collection,
    registeredType,
    type: registeredType,
    status: null,
    error: null,
    createdAt: null,
    updatedAt: null,
    statusKey: NO_KEY,
    transactionHash: '',
    transactionHashKey: NO_KEY,
    contractAddress: '',
    contractAddressKey: NO_KEY,
    gasUsed: 0n,
    gasUsedKey: NO_KEY,
    doneSeen: false,
    errorSeen: false,
  };
}

/**
 * Joins two states of one transaction. The join is commutative, associative and idempotent, with `emptyState` as
 * identity (docs/contract.md, 3-03).
 */
export function joinStates(a: TransactionState, b: TransactionState): TransactionState {
  const top = a.statusKey >= b.statusKey ? a : b;
  const hash = a.transactionHashKey >= b.transactionHashKey ? a : b;
  const contract = a.contractAddressKey >= b.contractAddressKey ? a : b;
  const gas = a.gasUsedKey >= b.gasUsedKey ? a : b;
  return {
    ...top,
    transactionHash: hash.transactionHash,
    transactionHashKey: hash.transactionHashKey,
    contractAddress: contract.contractAddress,
    contractAddressKey: contract.contractAddressKey,
    gasUsed: gas.gasUsed,
    gasUsedKey: gas.gasUsedKey,
    doneSeen: a.doneSeen || b.doneSeen,
    errorSeen: a.errorSeen || b.errorSeen,
  };
}

/**
 * Applies one notification to a state. Applying the same notifications in any order, any number of times, gives the
 * same state.
 */
export function joinNotification(state: TransactionState, notification: Notification): Joined {
  const joined = joinStates(state, stateOf(state, notification));
  const changed =
    joined.statusKey !== state.statusKey ||
    joined.transactionHashKey !== state.transactionHashKey ||
    joined.contractAddressKey !== state.contractAddressKey ||
    joined.gasUsedKey !== state.gasUsedKey ||
    joined.doneSeen !== state.doneSeen ||
    joined.errorSeen !== state.errorSeen;
  return {
    state: changed ? joined : state,
    changed,
    visible:
      changed &&
      (state.type !== joined.type ||
        state.status !== joined.status ||
        state.error !== joined.error ||
        state.createdAt?.text !== joined.createdAt?.text ||
        state.updatedAt?.text !== joined.updatedAt?.text ||
        state.transactionHash !== joined.transactionHash ||
        state.contractAddress !== joined.contractAddress ||
        state.gasUsed !== joined.gasUsed ||
        hasConflict(state) !== hasConflict(joined)),
    previousStatus: state.status,
  };
}

/** Checks whether both Done and Error were notified for one transaction, which an operator must resolve. */
export function hasConflict(state: TransactionState): boolean {
  return state.doneSeen && state.errorSeen;
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

/** Returns the state that a single notification gives. */
function stateOf(registration: Registration, notification: Notification): TransactionState {
  const empty = emptyState(registration);
  const { type, status, error, createdAt, updatedAt, transactionHash, contractAddress, gasUsed } = notification;
  // docs/contract.md, 3-02: user_transactions go straight to Done or Error, so a PendingReceipt does not apply
  // to them.
  if (registration.collection === 'user_transactions' && status === STATUS.PendingReceipt) return empty;
  const orderKey = orderKeyOf(notification);
  return {
    ...empty,
    type,
    status,
    error,
    createdAt,
    updatedAt,
    statusKey: orderKey,
    transactionHash,
    transactionHashKey: transactionHash === '' ? NO_KEY : orderKey,
    contractAddress,
    contractAddressKey: contractAddress === '' ? NO_KEY : orderKey,
    gasUsed,
    gasUsedKey: gasUsed === 0n ? NO_KEY : orderKey,
    doneSeen: status === STATUS.Done,
    errorSeen: status === STATUS.Error,
  };
}

/**
 * Returns the contract address that an asset gets from its transactions: from the one with the highest status key, then
 * the highest contract address key. Only a transaction of the type CreateTokenization with a notification of the status
 * Done gives an address; an Error that comes later does not undo that. Undefined when none gives one. Always call it
 * with all the asset's transactions, since a later notification can change the type of one.
 */
export function assetContractAddress(transactions: readonly TransactionState[]): string | undefined {
  const [best] = transactions
    .filter(({ collection, type }) => collection === 'token_transactions' && type === CREATE_TOKENIZATION)
    .filter(({ doneSeen, contractAddress }) => doneSeen && contractAddress !== '')
    .toSorted(
      (a, b) => compareKeys(b.statusKey, a.statusKey) || compareKeys(b.contractAddressKey, a.contractAddressKey),
    );
  return best?.contractAddress;
}

import type { Notification, ReceivedTime } from './notification.input.ts';
import { NO_KEY, type OrderKey, orderKeyOf } from './order-key.rules.ts';
import { STATUS, type TransactionCollection, type TransactionStatus } from './type-codes.rules.ts';

/** What registration says of a transaction. */
export interface Registration {
  readonly collection: TransactionCollection;
  readonly registeredType: number;
}

/** A transaction as all its notifications together make it. Every member is a plain column. */
export interface TransactionState extends Registration {
  /** These are of the highest notification; before any, `type` is the registered one. */
  readonly type: number;
  readonly status: TransactionStatus | null;
  readonly error: string | null;
  readonly createdAt: ReceivedTime | null;
  readonly updatedAt: ReceivedTime | null;
  readonly statusKey: OrderKey;
  /** Each of these is of the highest notification that has one, with the key of that notification. */
  readonly transactionHash: string;
  readonly transactionHashKey: OrderKey;
  readonly contractAddress: string;
  readonly contractAddressKey: OrderKey;
  readonly gasUsed: bigint;
  readonly gasUsedKey: OrderKey;
  /** Whether any notification, not only the highest, said Done or Error. */
  readonly doneSeen: boolean;
  readonly errorSeen: boolean;
}

export interface Joined {
  readonly state: TransactionState;
  /** Something is to be saved; without it `state` is the very object that was given. */
  readonly changed: boolean;
  /** Something that readers are shown differs, and not only a key. */
  readonly visible: boolean;
  readonly previousStatus: TransactionStatus | null;
}

/** A registered transaction of which no notification has come: the bottom of the join. */
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
 * The least state above two states of one transaction: commutative, associative, idempotent, with `emptyState` as identity
 * (specification section 3, rule 2).
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
 * Applies one notification of the transaction: the join with the state that this notification alone would make. Any order
 * and any number of deliveries of the same notifications end in the same state.
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
    visible: changed && differsVisibly(state, joined),
    previousStatus: state.status,
  };
}

/** Whether Done met Error: two outcomes were told of one transaction, and an operator has to look. */
export function hasConflict(state: TransactionState): boolean {
  return state.doneSeen && state.errorSeen;
}

/** The state that one notification makes by itself. */
function stateOf(registration: Registration, notification: Notification): TransactionState {
  const empty = emptyState(registration);
  if (isForeign(registration.collection, notification.status)) return empty;
  const { type, status, error, createdAt, updatedAt, transactionHash, contractAddress, gasUsed } = notification;
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

/** Specification section 3, rule 1: user_transactions go straight to Done or Error, so a PendingReceipt says nothing of them. */
function isForeign(collection: TransactionCollection, status: TransactionStatus): boolean {
  return collection === 'user_transactions' && status === STATUS.PendingReceipt;
}

function differsVisibly(a: TransactionState, b: TransactionState): boolean {
  return (
    a.type !== b.type ||
    a.status !== b.status ||
    a.error !== b.error ||
    a.createdAt?.text !== b.createdAt?.text ||
    a.updatedAt?.text !== b.updatedAt?.text ||
    a.transactionHash !== b.transactionHash ||
    a.contractAddress !== b.contractAddress ||
    a.gasUsed !== b.gasUsed ||
    hasConflict(a) !== hasConflict(b)
  );
}

import type { Notification, ReceivedTime } from './notification.input.ts';
import { STATUS, type TransactionStatus } from './type-codes.rules.ts';

/**
 * The place of a notification in the total order over the notifications of one transaction: lower-case hexadecimal text, whose
 * order as text (JavaScript's `<`, PostgreSQL's `collate "C"`) is that order. Two notifications share a key only if all their
 * known members are equal.
 */
export type OrderKey = string;

/** The key of no notification at all, below every other. */
export const NO_KEY: OrderKey = '';

/**
 * The order: rank of the status, `updated_at`, `created_at` (as instants), Done above Error, then the known members in the order of
 * specification section 2.7. Texts compare by their UTF-8 bytes and end with a zero byte, which no known text holds, so that a
 * text is below every longer one that it begins; a null error is below every text.
 */
export function orderKeyOf(notification: Notification): OrderKey {
  const { updatedAt, createdAt, status, type, transactionHash, contractAddress, gasUsed, error } = notification;
  return Buffer.concat([
    Buffer.of(rankOf(status)),
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

/** Negative when `a` is lower, 0 when they are the same, positive when `a` is higher. */
export function compareKeys(a: OrderKey, b: OrderKey): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** How far the status is on the way: Started, InProgress, PendingReceipt, then Done and Error, which share the highest rank. */
function rankOf(status: TransactionStatus): number {
  switch (status) {
    case STATUS.Started:
      return 1;
    case STATUS.InProgress:
      return 2;
    case STATUS.PendingReceipt:
      return 3;
    case STATUS.Done:
    case STATUS.Error:
      return 4;
    default:
      return status satisfies never;
  }
}

function instantBytes(time: ReceivedTime): Buffer {
  return Buffer.concat([signedBytes(time.seconds), unsignedBytes(BigInt(time.nanos))]);
}

function unsignedBytes(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(value);
  return bytes;
}

// The offset puts negative numbers below the others.
function signedBytes(value: bigint): Buffer {
  return unsignedBytes(value + 2n ** 63n);
}

import { randomUUID } from 'node:crypto';
import type { OutgoingMessage } from '../../src/events/bus/event-bus.ts';
import { TOPICS } from '../../src/events/bus/topics.ts';
import { notificationBody, STEPS, transactionId } from '../lib/notifications.ts';

/** Notifications that all tell something new: several of each transaction, far apart. */
export interface Notifications {
  /** A multiple of the steps of one transaction. */
  notifications: number;
  /** One of so many transactions of the table is notified of. */
  stride: number;
  /** How many transactions with that distance are passed over; none unless given. */
  skipped?: number;
}

/** The messages of the notifications in batches, each for both topics, as the webhook publishes them. */
export function* notifications(
  { notifications: count, stride, skipped = 0 }: Notifications,
  atOnce: number,
): Generator<OutgoingMessage[]> {
  const transactions = count / STEPS;
  let batch: OutgoingMessage[] = [];
  for (let n = 0; n < count; n++) {
    const id = transactionId(1 + (skipped + (n % transactions)) * stride);
    const value = Buffer.from(notificationBody(id, Math.floor(n / transactions)));
    for (const topic of [TOPICS.admin, TOPICS.user]) batch.push({ topic, key: id, value, headers: headers() });
    if (batch.length >= atOnce || n === count - 1) {
      yield batch;
      batch = [];
    }
  }
}

function headers(): Record<string, string> {
  return {
    'event-id': randomUUID(),
    'event-type': 'transaction.notification',
    'schema-version': '1',
    'correlation-id': randomUUID(),
    'received-at': new Date().toISOString(),
  };
}

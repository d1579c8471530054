import { withDeadLetters } from '../../events/bus/dead-letters.ts';
import type { EventBus, IncomingMessage, Subscription } from '../../events/bus/event-bus.ts';
import { TOPICS } from '../../events/bus/topics.ts';
import type { Log } from '../../lib/log.ts';
import { validTraceparent } from '../../lib/tracing.ts';
import { isRefusedValue } from '../../platform/database/sql-state.ts';
import { PoisonError, parseRegistration } from './registration.input.ts';
import type { Transactions } from './transactions.service.ts';
import type { TransactionTopic } from './type-codes.rules.ts';

interface ConsumerParts {
  bus: EventBus;
  transactions: Transactions;
  log: Log;
}

/** Starts the consumers of notifications and registrations, each a group of its own. */
export async function startTransactionConsumers(parts: ConsumerParts): Promise<Subscription[]> {
  const { bus, transactions, log } = parts;
  const notifications = (topic: TransactionTopic, groupId: string) =>
    bus.subscribe({
      groupId,
      topics: [topic],
      handle: withDeadLetters(bus, (batch) => transactions.applyBatch(topic, batch.map(deliveryOf)), isPoison),
    });
  const registrations = bus.subscribe({
    groupId: 'portcullis.transactions.registered',
    topics: [TOPICS.registered],
    handle: withDeadLetters(bus, (batch) => registerAll(batch, transactions, log), isPoison),
  });
  return Promise.all([
    notifications(TOPICS.admin, 'portcullis.transactions.admin'),
    notifications(TOPICS.user, 'portcullis.transactions.user'),
    registrations,
  ]);
}

async function registerAll(batch: readonly IncomingMessage[], transactions: Transactions, log: Log): Promise<void> {
  const registrations = batch.map(({ value }) => parseRegistration(value ?? new Uint8Array()));
  for (const id of await transactions.registerAllByOwner(registrations)) {
    log.warn({ transaction_id: id }, 'a transaction moved to the node that its owner names');
  }
}

function deliveryOf({ value, headers }: IncomingMessage) {
  return {
    body: value ?? new Uint8Array(),
    correlationId: headers['correlation-id'] ?? '',
    traceparent: validTraceparent(headers.traceparent),
  };
}

/** Whether no repeat mends an error: the message is no notification, or the database refuses what it says. */
function isPoison(error: unknown): boolean {
  return error instanceof PoisonError || isRefusedValue(error);
}

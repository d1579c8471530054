import { BusUnavailableError, type EventBus, type Subscription, withDeadLetters } from '../../events/bus/event-bus.ts';
import { TOPICS } from '../../events/bus/topics.ts';
import { validTraceparent } from '../../lib/tracing.ts';
import { uuidV7 } from '../../lib/uuid-v7.ts';
import { parseOrReject, Refusal } from '../../platform/errors.ts';
import { notificationInput, parseRegistration, rememberNotification } from './notification.input.ts';
import type { Transactions } from './transactions.service.ts';
import type { TransactionTopic } from './type-codes.rules.ts';

/** The `event-type` header of notifications on their topics. */
export const NOTIFICATION_EVENT = 'transaction.notification';
const SCHEMA_VERSION = '1';

/** Publishes the notifications of the chain processor, unchanged. */
export class NotificationPublisher {
  readonly #bus: Pick<EventBus, 'publish'>;

  constructor(bus: Pick<EventBus, 'publish'>) {
    this.#bus = bus;
  }

  /**
   * Publishes the bytes of a notification, unchanged, to the admin and the user topic (docs/contract.md, 6-01).
   * Resolves once both topics have acknowledged.
   * @throws Refusal `invalid_request` when the body is not a notification; `internal_error` when the bus does not
   * acknowledge within `deadlineMs`.
   */
  async publish({
    body,
    value,
    correlationId,
    traceparent,
    receivedAtMs,
    deadlineMs,
  }: {
    body: Buffer;
    /** The body as parsed by `parseJson`. */
    value: unknown;
    correlationId: string;
    /** The W3C trace context of the request; undefined when it has none. */
    traceparent: string | undefined;
    receivedAtMs: number;
    /** The time, in ms, for which the chain processor still waits for a response. */
    deadlineMs: number;
  }): Promise<void> {
    const notification = parseOrReject(notificationInput, value);
    rememberNotification(body, notification);
    const headers = {
      'event-id': uuidV7(),
      'event-type': NOTIFICATION_EVENT,
      'schema-version': SCHEMA_VERSION,
      'correlation-id': correlationId,
      'received-at': new Date(receivedAtMs).toISOString(),
      ...(traceparent === undefined ? {} : { traceparent }),
    };
    const topics = [TOPICS.admin, TOPICS.user];
    try {
      await this.#bus.publish(
        topics.map((topic) => ({ topic, key: notification.id, value: body, headers })),
        { deadlineMs },
      );
    } catch (error) {
      if (error instanceof BusUnavailableError) throw new Refusal('internal_error', { cause: error });
      throw error;
    }
  }
}

/** Starts the consumers of both notification topics and of registrations, each with its own consumer group. */
export async function startTransactionConsumers({
  bus,
  transactions,
}: {
  bus: EventBus;
  transactions: Transactions;
}): Promise<Subscription[]> {
  const notifications = (topic: TransactionTopic, groupId: string) =>
    bus.subscribe({
      groupId,
      topics: [topic],
      handle: withDeadLetters(bus, (batch) => {
        const deliveries = batch.map(({ value, headers }) => ({
          body: value ?? new Uint8Array(),
          correlationId: headers['correlation-id'] ?? '',
          traceparent: validTraceparent(headers.traceparent),
        }));
        return transactions.applyBatch(topic, deliveries);
      }),
    });
  return Promise.all([
    notifications(TOPICS.admin, 'portcullis.transactions.admin'),
    notifications(TOPICS.user, 'portcullis.transactions.user'),
    bus.subscribe({
      groupId: 'portcullis.transactions.registered',
      topics: [TOPICS.registered],
      handle: withDeadLetters(bus, async (batch) =>
        transactions.registerAllByOwner(batch.map(({ value }) => parseRegistration(value ?? new Uint8Array()))),
      ),
    }),
  ]);
}

import { BusUnavailableError, type EventBus } from '../../events/bus/event-bus.ts';
import { TOPICS } from '../../events/bus/topics.ts';
import { uuidV7 } from '../../lib/uuid-v7.ts';
import { AppError, invalidRequest } from '../../platform/errors.ts';
import { notificationOf } from './notification.input.ts';

/** The `event-type` of notifications on their topics. */
export const NOTIFICATION_EVENT = 'transaction.notification';
const SCHEMA_VERSION = '1';

interface ReceivedNotification {
  body: Buffer;
  /** What `parseJson` makes of the body. */
  value: unknown;
  correlationId: string;
  /** Where its trace goes on (W3C Trace Context); undefined: it has none. */
  traceparent: string | undefined;
  receivedAtMs: number;
  /** How many milliseconds its sender still waits. */
  deadlineMs: number;
}

/** Publishes what the chain processor tells of transactions, as it was received. */
export class NotificationPublisher {
  readonly #bus: Pick<EventBus, 'publish'>;

  constructor(bus: Pick<EventBus, 'publish'>) {
    this.#bus = bus;
  }

  /**
   * Publishes a notification's bytes, unchanged, to the admin and the user topic (specification section 6). Resolves
   * once both have acknowledged.
   * @throws AppError 400 for what is no notification, 500 when the bus does not acknowledge in time.
   */
  async publish(received: ReceivedNotification): Promise<void> {
    const { body, value, correlationId, traceparent, receivedAtMs, deadlineMs } = received;
    const parsed = notificationOf(value);
    if (!parsed.ok) throw invalidRequest(parsed.issues.map(({ path, message }) => ({ path, message })));
    const headers = {
      'event-id': uuidV7(),
      'event-type': NOTIFICATION_EVENT,
      'schema-version': SCHEMA_VERSION,
      'correlation-id': correlationId,
      'received-at': new Date(receivedAtMs).toISOString(),
      ...(traceparent === undefined ? {} : { traceparent }),
    };
    const key = parsed.notification.id;
    const topics = [TOPICS.admin, TOPICS.user];
    try {
      await this.#bus.publish(
        topics.map((topic) => ({ topic, key, value: body, headers })),
        { deadlineMs },
      );
    } catch (error) {
      if (error instanceof BusUnavailableError) throw new AppError(500, 'internal_error', { cause: error });
      throw error;
    }
  }
}

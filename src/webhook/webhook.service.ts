import { AppError, invalidRequest } from '../errors/app-error.ts';
import { BusUnavailableError, type EventBus } from '../events/event-bus.ts';
import { TOPICS } from '../events/topics.ts';
import { uuidV7 } from '../lib/uuid-v7.ts';
import { notificationOf } from '../transactions/notification.input.ts';

const EVENT_TYPE = 'transaction.notification';
const SCHEMA_VERSION = '1';

interface Received {
  body: Buffer;
  /** What `parseJson` makes of the body. */
  value: unknown;
  correlationId: string;
  /** Where its trace goes on. */
  traceparent?: string | undefined;
  receivedAtMs: number;
  /** Milliseconds that are left of the sender's patience. */
  deadlineMs: number;
}

/** Takes notifications in: each is validated and published to both topics before it is accepted. */
export class Webhook {
  readonly #bus: Pick<EventBus, 'publish'>;

  constructor(bus: Pick<EventBus, 'publish'>) {
    this.#bus = bus;
  }

  /**
   * Publishes a notification's bytes, unchanged, to the admin and the user topic (specification section 6). Resolves
   * once both have acknowledged.
   * @throws AppError 400 for what is no notification, 500 when the bus does not acknowledge in time.
   */
  async accept({ body, value, correlationId, traceparent, receivedAtMs, deadlineMs }: Received): Promise<void> {
    const parsed = notificationOf(value);
    if (!parsed.ok) throw invalidRequest(parsed.issues.map(({ path, message }) => ({ path, message })));
    const headers = {
      'event-id': uuidV7(),
      'event-type': EVENT_TYPE,
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

import type { Selectable } from 'kysely';
import { isoFromPg } from '../../lib/instants.ts';
import type { Log } from '../../lib/log.ts';
import { WorkLoop } from '../../lib/work-loop.ts';
import type { Db } from '../../platform/database/database.ts';
import type { Tables } from '../../tables/tables.ts';
import type { EventBus, OutgoingMessage } from '../bus/event-bus.ts';

/** An event to be written in the transaction of the change that it announces. */
export interface NewOutboxEvent {
  /** A UUID v7: the event's id. */
  id: string;
  topic: string;
  /** Events of one key are relayed in the order in which they were committed. */
  key: string;
  eventType: string;
  /** JSON. */
  payload: string;
  correlationId: string;
  /** Where its trace goes on. */
  traceparent?: string | undefined;
  createdAtMs: number;
}

type OutboxRow = Selectable<Tables['outbox']>;

const RELAY_LOCK = 4_273_003;

/** Reads and deletes the events that wait for their relay; each call is one statement. */
class OutboxStore {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /** Whether this transaction is the one that relays: of all processes one relays at a time. */
  async lead(): Promise<boolean> {
    const [row] = await this.#door().raw(
      (sql) => sql<{ leads: boolean }>`select pg_try_advisory_xact_lock(${RELAY_LOCK}::bigint) as leads`,
    );
    return row?.leads ?? false;
  }

  /** The oldest events. */
  oldest(limit: number): Promise<OutboxRow[]> {
    return this.#door().run((k) => k.selectFrom('outbox').selectAll().orderBy('seq').limit(limit));
  }

  async remove(ids: readonly string[]): Promise<void> {
    await this.#door().run((k) => k.deleteFrom('outbox').where('id', 'in', ids));
  }

  #door() {
    return this.#db.unscoped('the outbox carries the events of all nodes');
  }
}

interface RelayParts {
  db: Db;
  bus: Pick<EventBus, 'publish'>;
  /** This process has the database for itself: nobody else relays, and nothing waits inside a transaction. */
  isAlone: boolean;
  log: Log;
}

/** Events of other processes are seen by then at the latest. */
const POLL_MS = 1_000;
const BATCH_EVENTS = 500;
/** Far below what a broker takes for one partition. */
const BATCH_BYTES = 256 * 1024;
const PUBLISH_DEADLINE_MS = 10_000;
const SCHEMA_VERSION = '1';

/**
 * Publishes the events of the outbox and removes them once they are acknowledged: at least once, in order for one key.
 * Of all processes one relays at a time. While the bus is down the events wait.
 */
export class OutboxRelay {
  readonly #parts: RelayParts;
  readonly #store: OutboxStore;
  readonly #loop: WorkLoop;

  constructor(parts: RelayParts) {
    this.#parts = parts;
    this.#store = new OutboxStore(parts.db);
    this.#loop = new WorkLoop({
      iterate: async () => (await this.relayBatch()) > 0,
      onFailure: (error) => parts.log.warn({ err: error }, 'events stay in the outbox: they cannot be relayed'),
      pollMs: POLL_MS,
    });
  }

  /** Relays from now on. */
  start(): void {
    this.#loop.start();
  }

  /** There is something to relay: sooner than the next poll. */
  notify(): void {
    this.#loop.notify();
  }

  /** Ends after the batch that is under way. */
  async stop(): Promise<void> {
    await this.#loop.stop();
  }

  /**
   * Relays the oldest events and returns how many; 0 also while another process relays.
   * @throws what the bus or the database throws; the events stay.
   */
  async relayBatch(): Promise<number> {
    if (this.#parts.isAlone) return this.#relay();
    if ((await this.#store.oldest(1)).length === 0) return 0;
    return this.#parts.db.transaction(async () => ((await this.#store.lead()) ? this.#relay() : 0));
  }

  async #relay(): Promise<number> {
    const events = fitting(await this.#store.oldest(BATCH_EVENTS));
    if (events.length === 0) return 0;
    await this.#parts.bus.publish(events.map(messageOf), { deadlineMs: PUBLISH_DEADLINE_MS });
    await this.#store.remove(events.map(({ id }) => id));
    return events.length;
  }
}

/** The first events whose payloads fit in a batch; one at least. */
function fitting(events: OutboxRow[]): OutboxRow[] {
  let bytes = 0;
  const end = events.findIndex(({ payload }) => {
    bytes += Buffer.byteLength(payload);
    return bytes > BATCH_BYTES;
  });
  return end < 0 ? events : events.slice(0, Math.max(1, end));
}

function messageOf(row: OutboxRow): OutgoingMessage {
  const { id, topic, key, event_type, payload, correlation_id, traceparent, created_at } = row;
  return {
    topic,
    key,
    value: Buffer.from(payload),
    headers: {
      'event-id': id,
      'event-type': event_type,
      'schema-version': SCHEMA_VERSION,
      'correlation-id': correlation_id,
      'received-at': isoFromPg(created_at),
      ...(traceparent === null ? {} : { traceparent }),
    },
  };
}

import type { Insertable, Selectable } from 'kysely';
import { isoFromPg } from '../../lib/instants.ts';
import { firstWithin } from '../../lib/keyset.ts';
import type { Log } from '../../lib/log.ts';
import { WorkLoop } from '../../lib/work-loop.ts';
import type { Db } from '../../platform/database/database.ts';
import type { Tables } from '../../tables/tables.ts';
import type { EventBus, OutgoingMessage } from '../bus/event-bus.ts';

/**
 * An event to be written to the outbox in the same transaction as the change that it announces. Its id is a UUID v7,
 * its payload JSON text, its `traceparent` names the trace which the published message continues. Events with the same
 * key are published in the order in which they were committed.
 */
export type NewOutboxEvent = Insertable<Tables['outbox']>;

type OutboxRow = Selectable<Tables['outbox']>;

const RELAY_LOCK = 4_273_003;

/**
 * How often the outbox is read without a notification, in milliseconds: the longest delay of an event that another
 * process has written.
 */
const OUTBOX_POLL_MS = 1_000;
const BATCH_EVENTS = 500;
/** The maximum number of payload bytes in a batch: far less than a broker accepts for one partition. */
const BATCH_BYTES = 256 * 1024;
const PUBLISH_DEADLINE_MS = 10_000;
const SCHEMA_VERSION = '1';

/**
 * Publishes the events of the outbox and deletes them once they are acknowledged: at least once, and in order for each
 * key. Only one process relays at a time. While the bus is down, events wait in the outbox.
 */
export class OutboxRelay extends WorkLoop {
  readonly #deps;

  constructor(dependencies: {
    db: Db;
    bus: Pick<EventBus, 'publish'>;
    /** Whether this process has the database to itself: it then relays without a lock, and outside of any transaction. */
    isAlone: boolean;
    log: Log;
  }) {
    super({
      iterate: async () => (await this.relayBatch()) > 0,
      onFailure: (error) => dependencies.log.warn({ err: error }, 'cannot publish events; keeping them in the outbox'),
      pollMs: OUTBOX_POLL_MS,
    });
    this.#deps = dependencies;
  }

  /**
   * Publishes one batch of the oldest events and returns their number; 0 where there are none or another process
   * relays.
   * @throws what the bus or the database throws; the events stay in the outbox.
   */
  async relayBatch(): Promise<number> {
    if (this.#deps.isAlone) return this.#relay();
    if ((await this.#oldest(1)).length === 0) return 0;
    return this.#deps.db.transaction(async () => ((await this.#tryLock()) ? this.#relay() : 0));
  }

  async #relay(): Promise<number> {
    const events = firstWithin(BATCH_BYTES, await this.#oldest(BATCH_EVENTS), ({ payload }) =>
      Buffer.byteLength(payload),
    );
    if (events.length === 0) return 0;
    await this.#deps.bus.publish(events.map(messageOf), { deadlineMs: PUBLISH_DEADLINE_MS });
    await this.#unscoped().run((k) =>
      k.deleteFrom('outbox').where(
        'id',
        'in',
        events.map(({ id }) => id),
      ),
    );
    return events.length;
  }

  /**
   * Tries to take the lock of the relay for the current transaction: only one process relays at a time. Returns whether
   * it succeeded.
   */
  async #tryLock(): Promise<boolean> {
    const [row] = await this.#unscoped().raw(
      (sql) => sql<{ leads: boolean }>`select pg_try_advisory_xact_lock(${RELAY_LOCK}::bigint) as leads`,
    );
    return row?.leads ?? false;
  }

  #oldest(limit: number): Promise<OutboxRow[]> {
    return this.#unscoped().run((k) => k.selectFrom('outbox').selectAll().orderBy('seq').limit(limit));
  }

  #unscoped() {
    return this.#deps.db.unscoped('one outbox for all nodes');
  }
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

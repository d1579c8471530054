import type { Selectable } from 'kysely';
import type { Db } from '../db.ts';
import type { Tables } from '../entities.ts';

/** An event to be written in the transaction of what it tells of. */
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

export type OutboxRow = Selectable<Tables['outbox']>;

const RELAY_LOCK = 4_273_003;

/** The table of events that wait for their relay; each call is one statement. */
export class OutboxStore {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /** Whether this transaction is the one that relays: there is one at a time, in all replicas. */
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

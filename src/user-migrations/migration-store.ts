import type { Db } from '../db.ts';
import { textArray } from '../lib/text-array.ts';
import type { NewOutboxEvent } from '../outbox/outbox-store.ts';
import type { Taken } from './migration-outcome.rules.ts';
import type { NewUser } from './new-user.rules.ts';

/** What a row is looked up by; null where it has none. */
export interface LookedUp {
  email: string | null;
  externalId: string | null;
  address: string | null;
}

/** Which identifiers are taken, and the email as the database compares it. */
export interface Found extends Taken {
  emailKey: string | null;
}

/** Everything of a new migration but its rows. */
export interface NewMigration {
  id: string;
  createdBy: string;
  total: number;
  success: number;
  skipped: number;
  failed: number;
  atMs: number;
}

/** What is kept of a row. */
export interface RowRecord {
  /** From 1. */
  index: number;
  email: string | null;
  externalId: string | null;
  userId: string | null;
  status: string;
  reason: string | null;
}

/** The tables of a migration, set by set: each call is one statement, to be run inside of a transaction. */
export class MigrationStore {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /**
   * Nobody else changes the users of the node until the transaction ends, in which the planner sorts nothing that an
   * index gives in order (`lookUp`).
   */
  async lock(nodeId: string): Promise<void> {
    await this.#door().raw(
      (sql) => sql`
        select pg_advisory_xact_lock(hashtextextended(${`users of ${nodeId}`}::text, 0)),
          set_config('enable_sort', 'off', true)`,
    );
  }

  /**
   * Looks every row up among the users of the node. Emails are compared as the unique index does. Each look-up asks for
   * the first key from the row's own on: only the index of that key gives it in order, so that no plan reads all users of
   * the node, however old the statistics are. To be called under `lock`.
   */
  lookUp(nodeId: string, rows: readonly LookedUp[]): Promise<Found[]> {
    const emails = textArray(rows.map(({ email }) => email));
    const externalIds = textArray(rows.map(({ externalId }) => externalId));
    const addresses = textArray(rows.map(({ address }) => address));
    return this.#door().raw(
      (sql) => sql<Found>`
        select lower(r.email) as "emailKey",
          coalesce((select lower(u.email) from users u where u.node_id = ${nodeId}::uuid and u.email <> ''
            and lower(u.email) >= lower(r.email) order by lower(u.email) limit 1) = lower(r.email), false) as email,
          coalesce((select u.external_id from users u where u.node_id = ${nodeId}::uuid
            and u.external_id >= r.external_id order by u.external_id limit 1) = r.external_id, false) as "externalId",
          coalesce((select u.address from users u where u.node_id = ${nodeId}::uuid and u.address <> ''
            and u.address >= r.address order by u.address limit 1) = r.address, false) as address
        from unnest(${emails}::text[], ${externalIds}::text[], ${addresses}::text[])
          with ordinality as r (email, external_id, address, ordinal)
        order by r.ordinal`,
    );
  }

  /** Inserts users together with their events: all or nothing. */
  async insert(nodeId: string, users: readonly NewUser[], events: readonly NewOutboxEvent[]): Promise<void> {
    const column = (name: keyof NewUser) => textArray(users.map((user) => user[name]));
    const member = (name: Exclude<keyof NewOutboxEvent, 'createdAtMs'>) =>
      textArray(events.map((event) => event[name] ?? null));
    const eventTimes = textArray(events.map(({ createdAtMs }) => new Date(createdAtMs).toISOString()));
    await this.#door().raw(
      (sql) => sql`
        with created as (
          insert into users (id, node_id, external_id, name, surname, email, address, kyc_verified, kyc_token_sent,
            kyc_token_sent_at, created_at)
          select u.id::uuid, ${nodeId}::uuid, u.external_id, u.name, u.surname, u.email, u.address,
            u.kyc_token_sent_at is not null, u.kyc_token_sent_at is not null, u.kyc_token_sent_at::timestamptz,
            u.created_at::timestamptz
          from unnest(${column('id')}::text[], ${column('externalId')}::text[], ${column('name')}::text[],
            ${column('surname')}::text[], ${column('email')}::text[], ${column('address')}::text[],
            ${column('kycTokenSentAt')}::text[], ${column('createdAt')}::text[])
            as u (id, external_id, name, surname, email, address, kyc_token_sent_at, created_at)
        )
        insert into outbox (id, topic, key, event_type, payload, correlation_id, traceparent, created_at)
        select e.id::uuid, e.topic, e.key, e.event_type, e.payload, e.correlation_id, e.traceparent,
          e.created_at::timestamptz
        from unnest(${member('id')}::text[], ${member('topic')}::text[], ${member('key')}::text[],
          ${member('eventType')}::text[], ${member('payload')}::text[], ${member('correlationId')}::text[],
          ${member('traceparent')}::text[], ${eventTimes}::text[])
          as e (id, topic, key, event_type, payload, correlation_id, traceparent, created_at)`,
    );
  }

  /** Records a migration that is done. */
  async record(nodeId: string, migration: NewMigration): Promise<void> {
    const { atMs, createdBy, ...counted } = migration;
    const at = new Date(atMs).toISOString();
    const values = { ...counted, status: 'done' as const, created_by: createdBy, created_at: at, finished_at: at };
    await this.#db.forNode(nodeId).run((k) => k.insertInto('migrations').values(values));
  }

  /** Records rows of a migration. */
  async recordRows(nodeId: string, migrationId: string, rows: readonly RowRecord[]): Promise<void> {
    const column = (name: Exclude<keyof RowRecord, 'index'>) => textArray(rows.map((row) => row[name]));
    await this.#door().raw(
      (sql) => sql`
        insert into migration_rows (migration_id, index, node_id, email, external_id, user_id, status, reason)
        select ${migrationId}::uuid, r.index::integer, ${nodeId}::uuid, r.email, r.external_id, r.user_id::uuid, r.status,
          r.reason
        from unnest(${textArray(rows.map(({ index }) => String(index)))}::text[], ${column('email')}::text[], ${column('externalId')}::text[],
          ${column('userId')}::text[], ${column('status')}::text[], ${column('reason')}::text[])
          as r (index, email, external_id, user_id, status, reason)`,
    );
  }

  /** From here on a failed statement can be undone without the ones before it. */
  async savepoint(name: SavepointName): Promise<void> {
    await this.#door().raw((sql) => sql`savepoint ${sql.id(name)}`);
  }

  /** What came since the savepoint stays. */
  async release(name: SavepointName): Promise<void> {
    await this.#door().raw((sql) => sql`release savepoint ${sql.id(name)}`);
  }

  /** What came since the savepoint is undone. */
  async rollBack(name: SavepointName): Promise<void> {
    await this.#door().raw((sql) => sql`rollback to savepoint ${sql.id(name)}`);
  }

  #door() {
    return this.#db.unscoped('sets of rows of one node, which each statement names');
  }
}

/** `search` is around the inserts of halves, `rows` around each of them. */
type SavepointName = 'search' | 'rows';

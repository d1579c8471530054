import type { NewOutboxEvent } from '../../events/outbox/outbox.ts';
import type { Db } from '../../platform/database/database.ts';
import { textArray } from '../../platform/database/sql-state.ts';
import type { UnscopedDatabase } from '../../platform/database/tenant-db.ts';
import type { Tables } from '../../tables/tables.ts';
import type { UserRow } from './users.service.ts';

/** What identifies a user to be; null where there is none. */
interface IdentifierQuery {
  email: string | null;
  externalId: string | null;
  address: string | null;
}

/** Which of the identifiers a user of the tenant has already. */
export interface Taken {
  email: boolean;
  externalId: boolean;
  address: boolean;
}

/** Which identifiers are taken, and the email as the database compares it. */
interface Found extends Taken {
  emailKey: string | null;
}

/** Names a savepoint: `search` is around the inserts of halves, `rows` around each of them. */
type SavepointName = 'search' | 'rows';

/** Writes users set by set: each call is one statement, to be run inside of a transaction. */
export class UserStore {
  readonly #unscoped: UnscopedDatabase<Tables>;

  constructor(db: Db) {
    this.#unscoped = db.unscoped('sets of rows of one node, which each statement names');
  }

  /**
   * Keeps others from changing the users of the tenant until the transaction ends, in which the planner sorts nothing
   * that an index gives in order (`taken`).
   */
  async lock(nodeId: string): Promise<void> {
    await this.#unscoped.raw(
      (sql) => sql`
        select pg_advisory_xact_lock(hashtextextended(${`users of ${nodeId}`}::text, 0)),
          set_config('enable_sort', 'off', true)`,
    );
  }

  /**
   * Returns what of each query is taken, in order. Emails are compared as the unique index does. Each query asks for the
   * first key from its own on: only the index of that key gives it in order, so that no plan reads all users of the
   * tenant, however old the statistics are. To be called under `lock`.
   */
  taken(nodeId: string, queries: readonly IdentifierQuery[]): Promise<Found[]> {
    const emails = textArray(queries.map(({ email }) => email));
    const externalIds = textArray(queries.map(({ externalId }) => externalId));
    const addresses = textArray(queries.map(({ address }) => address));
    return this.#unscoped.raw(
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
  async insert(nodeId: string, users: readonly UserRow[], events: readonly NewOutboxEvent[]): Promise<void> {
    const column = (name: Exclude<keyof UserRow, 'kyc_verified' | 'kyc_token_sent'>) =>
      textArray(users.map((user) => user[name]));
    const member = (name: Exclude<keyof NewOutboxEvent, 'createdAtMs'>) =>
      textArray(events.map((event) => event[name] ?? null));
    const eventTimes = textArray(events.map(({ createdAtMs }) => new Date(createdAtMs).toISOString()));
    await this.#unscoped.raw(
      (sql) => sql`
        with created as (
          insert into users (id, node_id, external_id, name, surname, email, address, kyc_verified, kyc_token_sent,
            kyc_token_sent_at, created_at)
          select u.id::uuid, ${nodeId}::uuid, u.external_id, u.name, u.surname, u.email, u.address,
            u.kyc_token_sent_at is not null, u.kyc_token_sent_at is not null, u.kyc_token_sent_at::timestamptz,
            u.created_at::timestamptz
          from unnest(${column('id')}::text[], ${column('external_id')}::text[], ${column('name')}::text[],
            ${column('surname')}::text[], ${column('email')}::text[], ${column('address')}::text[],
            ${column('kyc_token_sent_at')}::text[], ${column('created_at')}::text[])
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

  /** Begins a part of the transaction that can be undone without what came before it. */
  async savepoint(name: SavepointName): Promise<void> {
    await this.#unscoped.raw((sql) => sql`savepoint ${sql.id(name)}`);
  }

  /** Keeps what came since the savepoint. */
  async release(name: SavepointName): Promise<void> {
    await this.#unscoped.raw((sql) => sql`release savepoint ${sql.id(name)}`);
  }

  /** Undoes what came since the savepoint. */
  async rollBack(name: SavepointName): Promise<void> {
    await this.#unscoped.raw((sql) => sql`rollback to savepoint ${sql.id(name)}`);
  }
}

import { type Author, setAuthor } from '../../access/identity/authors.ts';
import type { AuditErasure } from '../../audit/erasure.ts';
import { noteUsers } from '../../audit/noted-users.ts';
import type { NewOutboxEvent } from '../../events/outbox/outbox.ts';
import type { IdempotentResponses } from '../../idempotency/idempotent-responses.ts';
import { identifierKey } from '../../lib/identifier-key.ts';
import { cutTo } from '../../lib/input.ts';
import { isoFromPg } from '../../lib/instants.ts';
import { KeyedMutex } from '../../lib/semaphore.ts';
import { nfc } from '../../lib/spelling.ts';
import type { Db, UnscopedDatabase } from '../../platform/database/database.ts';
import { holdIdentifier, renameIdentifier } from '../../platform/database/identifier-column.ts';
import { containing, keysetList } from '../../platform/database/keyset-list.ts';
import { insertRows, textArray } from '../../platform/database/row-sets.ts';
import { idOrNotFound, orNotFound, serviceUnavailable } from '../../platform/errors.ts';
import { outsideRequest, requestSignal, withoutDeadline } from '../../platform/held-memory.ts';
import { MAX_LENGTHS } from '../../tables/text-lengths.ts';
import { emailOf, type UserRow } from './users.rules.ts';

/**
 * Returns a user as REST and the MCP tools show it, with the members in the documented order (docs/contract.md, 2.8-01)
 * and without the time of its migration. `kyc` is null for a user who is not verified and was sent no KYC token.
 */
export function userView(row: UserRow) {
  const { id, external_id, name, surname, email, address, identity_number, kyc_verified, kyc_token_sent } = row;
  const kyc = {
    is_verified: kyc_verified,
    token_sent: kyc_token_sent,
    token_sent_at: row.kyc_token_sent_at && isoFromPg(row.kyc_token_sent_at),
    token_tx_hash: row.kyc_token_tx_hash,
  };
  const members = { id, external_id, name, surname, email, address, identity_number };
  return { ...members, kyc: kyc_token_sent || kyc_verified ? kyc : null };
}

/** The searched columns besides the email, which is compared by its key. */
const SPELLED = ['name', 'surname', 'external_id', 'address'] as const;

/** Returns the pattern for each column: the text in the form in which the column is stored or compared. */
function patternsOf(search: string): Partial<Record<'email' | (typeof SPELLED)[number], string>> {
  const name = containing(nfc(search));
  const email = containing(identifierKey(search) || search);
  const address = containing(emailOf(search) || search);
  return { name, surname: name, email, external_id: containing(search), address };
}

/** Reads the users of a tenant by keyset, oldest first. */
export class UserPages extends keysetList({
  rows: (k) => k.selectFrom('users').selectAll(),
  valuesOf: ({
    search,
    ...otherFilters
  }: {
    id?: string | undefined;
    /** Text that the name, surname, email, external id or wallet address must contain, ignoring case. */
    search?: string | undefined;
    kycVerified?: boolean | undefined;
  }) => ({
    ...otherFilters,
    ...(search !== undefined && patternsOf(search)),
  }),
  where: (eb, { id, kycVerified, ...patterns }) => [
    ...(id === undefined ? [] : [eb('id', '=', id)]),
    ...(kycVerified === undefined ? [] : [eb('kyc_verified', '=', kycVerified)]),
    ...(patterns.name === undefined
      ? []
      : [
          eb.or([
            eb(eb.fn('identifier_key', ['email']), 'like', patterns.email ?? ''),
            ...SPELLED.map((column) => eb(column, 'ilike', patterns[column] ?? '')),
          ]),
        ]),
  ],
  order: ['created_at', 'id'],
  onRows: (rows) => noteUsers(rows.map(({ id }) => id)),
}) {}

/**
 * The identifiers of a user to create, the email by its key, or the ids of the tenant's users that have them; null for one
 * that is missing.
 */
interface Identifiers {
  email: string | null;
  externalId: string | null;
  address: string | null;
}

const USER_COLUMNS = {
  uuid: ['id', 'node_id'],
  text: ['external_id', 'name', 'surname', 'email', 'address'],
  boolean: ['kyc_verified', 'kyc_token_sent'],
  timestamptz: ['kyc_token_sent_at', 'created_at'],
} as const;
const EVENT_COLUMNS = {
  uuid: ['id'],
  text: ['topic', 'key', 'event_type', 'payload', 'correlation_id', 'traceparent'],
  timestamptz: ['created_at'],
} as const;

/**
 * The name of a savepoint: `dry_run` encloses all that a dry run rolls back, `search` the inserts of halves, `rows` each
 * single insert.
 */
type SavepointName = 'dry_run' | 'search' | 'rows';

/** Writes users in sets. Each method runs one statement and must be called inside a transaction. */
export class UserStore {
  readonly #unscoped: UnscopedDatabase;

  constructor(db: Db) {
    this.#unscoped = db.unscoped('statements on row sets name their node');
  }

  /**
   * Locks the users of a tenant against changes by others until the end of the transaction. It also turns off sorting
   * in the planner, so that `owners` reads from indexes.
   */
  async lock(nodeId: string): Promise<void> {
    await this.#unscoped.raw(
      (sql) => sql`
        select pg_advisory_xact_lock(hashtextextended(${`users of ${nodeId}`}::text, 0)),
          set_config('enable_sort', 'off', true)`,
    );
  }

  /**
   * Returns for each query, in order, who has the identifiers; emails are compared by their keys. Each
   * subquery selects the first key at or above the wanted one, which only the index on that key can give in order: no
   * plan then reads all users of the tenant, however old the statistics are. Call it under `lock`.
   */
  owners(nodeId: string, queries: readonly Identifiers[]): Promise<Identifiers[]> {
    const emails = textArray(queries.map(({ email }) => email));
    const externalIds = textArray(queries.map(({ externalId }) => externalId));
    const addresses = textArray(queries.map(({ address }) => address));
    return this.#unscoped.raw(
      (sql) => sql<Identifiers>`
        select
          (select case identifier_key(u.email) when r.email then u.id end from users u
            where u.node_id = ${nodeId}::uuid and u.email <> '' and identifier_key(u.email) >= r.email
            order by identifier_key(u.email) limit 1) as email,
          (select case u.external_id when r.external_id then u.id end from users u
            where u.node_id = ${nodeId}::uuid and u.external_id >= r.external_id
            order by u.external_id limit 1) as "externalId",
          (select case u.address when r.address then u.id end from users u
            where u.node_id = ${nodeId}::uuid and u.address <> '' and u.address >= r.address
            order by u.address limit 1) as address
        from unnest(${emails}::text[], ${externalIds}::text[], ${addresses}::text[])
          with ordinality as r (email, external_id, address, ordinal)
        order by r.ordinal`,
    );
  }

  /**
   * Notes the users whom the rows that note none would match, by the email of one of them who is about to get another: an
   * erasure finds the rows then.
   */
  async noteRows(nodeId: string, userId: string): Promise<void> {
    await this.#unscoped.raw(
      (sql) => sql`
        update migration_rows r set noted_users = array(
          select o.id from users o where o.node_id = r.node_id and (
            identifier_key(o.email) = identifier_key(r.email) or o.external_id = r.external_id))
        from users u where u.node_id = ${nodeId} and u.id = ${userId} and r.node_id = u.node_id
          and r.noted_users is null and identifier_key(r.email) = nullif(identifier_key(u.email), '')`,
    );
  }

  /** Inserts users together with their events in one statement. */
  async insert(users: readonly UserRow[], events: readonly NewOutboxEvent[]): Promise<void> {
    await this.#unscoped.raw(
      (sql) => sql`
        with created as (${insertRows(sql, 'users', users, USER_COLUMNS)})
        ${insertRows(sql, 'outbox', events, EVENT_COLUMNS)}`,
    );
  }

  /**
   * Erases the migration rows that created or matched the user. A row that notes no users, such as one of a dry run,
   * counts if it has the email or the external id. Returns the ids of their migrations.
   */
  async eraseRows(nodeId: string, userId: string): Promise<string[]> {
    const erased = await this.#unscoped.raw(
      (sql) => sql<{ id: string }>`
        with erased as (update migration_rows r set email = null, external_id = null
        from users u where u.node_id = ${nodeId} and u.id = ${userId} and r.node_id = u.node_id and (
          r.user_id = u.id or r.noted_users @> array[u.id] or (r.noted_users is null
            and (identifier_key(r.email) = nullif(identifier_key(u.email), '') or r.external_id = u.external_id)))
          returning r.migration_id)
        select distinct migration_id as id from erased order by migration_id`,
    );
    return erased.map(({ id }) => id);
  }

  /** Sets a savepoint, to which the transaction can be rolled back. */
  async savepoint(name: SavepointName): Promise<void> {
    await this.#unscoped.raw((sql) => sql`savepoint ${sql.id(name)}`);
  }

  /** Releases a savepoint and keeps what was written since. */
  async release(name: SavepointName): Promise<void> {
    await this.#unscoped.raw((sql) => sql`release savepoint ${sql.id(name)}`);
  }

  /** Rolls back what was written since a savepoint. */
  async rollBack(name: SavepointName): Promise<void> {
    await this.#unscoped.raw((sql) => sql`rollback to savepoint ${sql.id(name)}`);
  }
}

/**
 * Gives a user of a tenant another email.
 * @throws Refusal `not_found` when the tenant has no such user, or the user is erased, `duplicate` when another user has
 * the email.
 */
export function renameUser(db: Db, nodeId: string, id: string, email: string): Promise<UserRow> {
  return renameIdentifier(db, ['users', 'email'], { nodeId, id, text: email }, async () => {
    await new UserStore(db).noteRows(nodeId, id);
    const [row] = await db.forNode(nodeId).run((k) =>
      k
        .updateTable('users')
        .set({ email: emailOf(email), email_clash: 0 })
        .where('id', '=', id)
        .where('erased_at', 'is', null)
        .returningAll(),
    );
    return orNotFound(row);
  });
}

/** The greatest number of erasures of one tenant that wait for the mutex. */
const MAX_WAITING = 64;

/** The personal data of a user, blank. */
const BLANK = {
  external_id: null,
  name: '',
  surname: '',
  email: '',
  email_clash: 0,
  address: '',
  identity_number: '',
  kyc_token_tx_hash: null,
};

/** Erases the personal data of users. The user's row, its id and its KYC status stay. */
export class UserErasure {
  readonly #deps;
  /** A mutex for each tenant, so that waiting erasures hold no connection. */
  readonly #mutex = new KeyedMutex({ maxWaiting: MAX_WAITING, refusal: serviceUnavailable, signalOf: requestSignal });
  readonly #store: UserStore;

  constructor(deps: {
    db: Db;
    auditErasure: AuditErasure;
    idempotentResponses: Pick<IdempotentResponses, 'erase'>;
    nowMs(): number;
    /** Resolves once the audit records of all finished requests are in their table, as far as this process can know. */
    auditSettled(): Promise<void>;
  }) {
    this.#deps = deps;
    this.#store = new UserStore(deps.db);
  }

  /**
   * Erases a user by provenance: the user's row and rows of user migrations, and the kept responses and audit records that
   * have noted the user. Housekeeping repeats it for audit records that arrive later. Returns the row, which keeps the
   * numbers of all erasures of the user, and the `sub` of the token; null for the command line.
   * @throws Refusal `not_found` when the tenant has no user with this id.
   * @throws Refusal `service_unavailable` when too many are waiting.
   */
  erase(nodeId: string, id: string, by: Author | null): Promise<UserRow> {
    return this.#mutex.run(nodeId, () => withoutDeadline(() => this.#erase(nodeId, id, by)));
  }

  async #erase(nodeId: string, id: string, by: Author | null): Promise<UserRow> {
    const { db, nowMs, auditErasure, auditSettled, idempotentResponses } = this.#deps;
    const userId = idOrNotFound(id);
    await db.transaction(async () => {
      await this.#store.lock(nodeId);
      if (by) await setAuthor(db, by);
      const [before] = await db
        .forNode(nodeId)
        .run((k) => k.selectFrom('users').select('email').where('id', '=', userId));
      const erased_migrations = await this.#store.eraseRows(nodeId, userId);
      const responses = await idempotentResponses.erase(nodeId, userId);
      await this.#count(nodeId, userId, 'erased_responses', responses, {
        ...BLANK,
        erased_at: new Date(nowMs()).toISOString(),
        erased_migrations,
        erased_by: by && cutTo(by.subject, MAX_LENGTHS.users.erased_by),
      });
      await holdIdentifier(db, ['users', 'email'], nodeId, before?.email ?? '');
    });
    noteUsers([userId]);
    const seal = await auditErasure.seal(userId);
    let records = await auditErasure.erase(userId);
    await auditSettled();
    records += await outsideRequest(() => auditErasure.erase(userId));
    return this.#count(nodeId, userId, 'erased_records', records, { erased_seal: JSON.stringify(seal) });
  }

  /** Adds to a number of the receipt and sets other columns. The database adds: other processes may erase the same user. */
  async #count(
    nodeId: string,
    id: string,
    column: 'erased_records' | 'erased_responses',
    count: number,
    set: Partial<Omit<UserRow, 'node_id'>> = {},
  ): Promise<UserRow> {
    const [user] = await this.#deps.db.forNode(nodeId).run((k) =>
      k
        .updateTable('users')
        .set(set)
        .set(column, (eb) => eb(eb.fn.coalesce(column, eb.lit(0)), '+', count))
        .where('id', '=', id)
        .returningAll(),
    );
    return orNotFound(user);
  }
}

import type { Insertable, Selectable } from 'kysely';
import { iso } from '../../lib/instants.ts';
import type { Db, UnscopedDatabase } from '../../platform/database/database.ts';
import { columnAssignments, insertRows, rowSource, textArray } from '../../platform/database/row-sets.ts';
import type { Tables } from '../../tables/tables.ts';
import type { TransactionCollection } from '../../tables/transaction-content.ts';
import { NO_KEY, type TransactionState } from './join.rules.ts';
import type { Delivery, ParsedDelivery, ReceivedTime } from './notification.input.ts';

/** A row of the table of registered transactions. */
export type TransactionRow = Selectable<Tables['transactions']>;

/** A registered transaction with its join state. */
export interface RegisteredTransaction {
  id: string;
  nodeId: string;
  assetId: string | null;
  /** Whether the registration was made by a mutation, so that the owner may still change its tenant and collection. */
  isProvisional: boolean;
  state: TransactionState;
}

/** Builds a registered transaction from its row. */
export function registeredOfRow(row: TransactionRow): RegisteredTransaction {
  const { id, node_id: nodeId, asset_id: assetId, registered_by: registeredBy } = row;
  return { id, nodeId, assetId, isProvisional: registeredBy === 'mutation', state: stateOfRow(row) };
}

/** Returns the join state that a row stores. */
export function stateOfRow(row: TransactionRow): TransactionState {
  return {
    collection: row.collection,
    registeredType: row.registered_type,
    type: row.type,
    status: row.status,
    error: row.error,
    createdAt: receivedTime(row.created_text, row.created_seconds, row.created_nanos),
    updatedAt: receivedTime(row.updated_text, row.updated_seconds, row.updated_nanos),
    statusKey: row.status_key ?? NO_KEY,
    transactionHash: row.transaction_hash,
    transactionHashKey: row.transaction_hash_key ?? NO_KEY,
    contractAddress: row.contract_address,
    contractAddressKey: row.contract_address_key ?? NO_KEY,
    gasUsed: BigInt(row.gas_used),
    gasUsedKey: row.gas_used_key ?? NO_KEY,
    doneSeen: row.done_seen,
    errorSeen: row.error_seen,
  };
}

function receivedTime(text: string | null, seconds: string | null, nanos: number | null): ReceivedTime | null {
  return text === null || seconds === null || nanos === null ? null : { text, seconds: BigInt(seconds), nanos };
}

/**
 * A row of a registration: its tenant, collection, type and asset, and whether the owner (`topic`) or a mutation made
 * it.
 */
export type RegistrationRow = Pick<
  Insertable<Tables['transactions']>,
  'id' | 'node_id' | 'collection' | 'registered_type' | 'registered_by' | 'asset_id' | 'type'
>;

const REGISTRATION_COLUMNS = {
  uuid: ['node_id', 'asset_id'],
  text: ['id', 'collection', 'registered_by'],
  integer: ['registered_type', 'type'],
} as const;
const PARKED_COLUMNS = { text: ['id', 'correlation_id', 'traceparent'], bytea: ['body_sha256', 'body'] } as const;
/** The columns that store a join state. */
const STATE_COLUMNS = {
  text: [
    'status_key',
    'error',
    'created_text',
    'updated_text',
    'transaction_hash',
    'transaction_hash_key',
    'contract_address',
    'contract_address_key',
    'gas_used_key',
  ],
  smallint: ['status'],
  integer: ['type', 'created_nanos', 'updated_nanos'],
  bigint: ['created_seconds', 'updated_seconds'],
  numeric: ['gas_used'],
  boolean: ['done_seen', 'error_seen'],
} as const;

/**
 * Reads and writes the tables of the mirror, the local copy of transactions. Methods that write must run inside a
 * transaction.
 */
export class TransactionStore {
  readonly #database: UnscopedDatabase;

  constructor(db: Db) {
    this.#database = db.unscoped('notifications name ids of all nodes');
  }

  /**
   * Locks ids until the end of the transaction, so that parking and registering exclude each other. The locks are taken
   * in the order of the ids, so that no deadlock arises.
   */
  async lockIds(ids: readonly string[]): Promise<void> {
    const sorted = textArray(ids.toSorted());
    await this.#database.raw(
      (sql) => sql`
        insert into transaction_ids (id) select id from unnest(${sorted}::text[]) as i (id) on conflict do nothing`,
    );
    await this.#database.raw(
      (sql) => sql`select 1 from transaction_ids where id = any (${sorted}::text[]) order by id for update`,
    );
  }

  /**
   * Returns the ids that their owner has registered in one of the collections. This needs no lock: a
   * registration by the owner never changes.
   */
  async idsOwnedByOtherTopic(
    collections: readonly TransactionCollection[],
    ids: readonly string[],
  ): Promise<Set<string>> {
    const rows = await this.#database.raw(
      (sql) => sql<{ id: string }>`
        select id from transactions
        where id = any (${textArray(ids)}::text[]) and registered_by = 'topic'
          and collection = any (${textArray(collections)}::text[])`,
    );
    return new Set(rows.map(({ id }) => id));
  }

  async rows(ids: readonly string[]): Promise<TransactionRow[]> {
    return this.#database.raw(
      (sql) => sql<TransactionRow>`select * from transactions where id = any (${textArray(ids)}::text[])`,
    );
  }

  async load(ids: readonly string[]): Promise<Map<string, RegisteredTransaction>> {
    return new Map((await this.rows(ids)).map((row) => [row.id, registeredOfRow(row)]));
  }

  /** Inserts registrations or replaces existing ones; `save` writes the other columns of the join. */
  async register(rows: readonly RegistrationRow[]): Promise<void> {
    const replaced = Object.values(REGISTRATION_COLUMNS).flatMap((names) =>
      names.map((name) => `${name} = excluded.${name}`),
    );
    await this.#database.raw(
      (sql) => sql`
        ${insertRows(sql, 'transactions', rows, REGISTRATION_COLUMNS)}
        on conflict (id) do update set ${sql.raw(replaced.join(', '))}`,
    );
  }

  /** Parks notifications. A notification with the same id and bytes is parked only once. */
  async park(deliveries: readonly ParsedDelivery[]): Promise<void> {
    if (deliveries.length === 0) return;
    const rows = deliveries.map(({ notification: { id }, body, sha256, correlationId, traceparent }) => {
      const bytes = { body_sha256: `\\x${sha256}`, body: `\\x${Buffer.from(body).toString('hex')}` };
      return { id, ...bytes, correlation_id: correlationId, traceparent };
    });
    await this.#database.raw(
      (sql) => sql`${insertRows(sql, 'parked_notifications', rows, PARKED_COLUMNS)} on conflict do nothing`,
    );
  }

  /** Removes the parked notifications of these ids and returns them, in no particular order. */
  async takeParked(ids: readonly string[]): Promise<Delivery[]> {
    if (ids.length === 0) return [];
    const rows = await this.#database.raw(
      (sql) => sql<Pick<Selectable<Tables['parked_notifications']>, 'body' | 'correlation_id' | 'traceparent'>>`
        delete from parked_notifications where id = any (${textArray(ids)}::text[])
        returning body, correlation_id, traceparent`,
    );
    return rows.map((row) => ({
      body: row.body,
      correlationId: row.correlation_id,
      traceparent: row.traceparent ?? undefined,
    }));
  }

  /**
   * Writes the join states of registered transactions in one statement. The columns that registration wrote stay
   * unchanged.
   */
  async save(changed: readonly RegisteredTransaction[]): Promise<void> {
    if (changed.length === 0) return;
    const rows = changed.map(({ id, state }) => ({
      id,
      type: state.type,
      status: state.status,
      error: state.error,
      created_text: state.createdAt?.text ?? null,
      created_seconds: state.createdAt?.seconds.toString() ?? null,
      created_nanos: state.createdAt?.nanos ?? null,
      updated_text: state.updatedAt?.text ?? null,
      updated_seconds: state.updatedAt?.seconds.toString() ?? null,
      updated_nanos: state.updatedAt?.nanos ?? null,
      status_key: state.statusKey,
      transaction_hash: state.transactionHash,
      transaction_hash_key: state.transactionHashKey,
      contract_address: state.contractAddress,
      contract_address_key: state.contractAddressKey,
      gas_used: state.gasUsed.toString(),
      gas_used_key: state.gasUsedKey,
      done_seen: state.doneSeen,
      error_seen: state.errorSeen,
    }));
    await this.#database.raw(
      (sql) => sql`
        update transactions t set ${sql.raw(columnAssignments(STATE_COLUMNS))}
        from ${rowSource(sql, rows, { ...STATE_COLUMNS, id: ['id'] })} where t.id = given.id`,
    );
  }
}

/** A lookup that is due, and how often it has been made before. */
export type DueLookup = Pick<Selectable<Tables['transaction_lookups']>, 'id' | 'attempts'>;

/**
 * Stores the pending lookups: ids that have parked notifications but no registration. Each method runs one statement
 * unless it says otherwise.
 */
export class LookupStore {
  readonly #database: UnscopedDatabase;

  constructor(db: Db) {
    this.#database = db.unscoped('the node of unregistered ids is unknown');
  }

  /** Adds lookups for ids, in the transaction that parks their notifications. */
  async add(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    await this.#database.raw(
      (sql) => sql`
        insert into transaction_lookups (id) select id from unnest(${textArray(ids)}::text[]) as w (id)
        on conflict do nothing`,
    );
  }

  /** Removes the lookups of ids that are registered now. */
  async remove(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    await this.#database.raw((sql) => sql`delete from transaction_lookups where id = any (${textArray(ids)}::text[])`);
  }

  /** Claims the due lookups that have been due longest, new ones first, and counts an attempt for each. */
  claim({ limit, nowMs, untilMs }: { limit: number; nowMs: number; untilMs: number }): Promise<DueLookup[]> {
    // A materialized CTE, because the planner may run a subquery in a condition more than once and so exceed the limit.
    return this.#database.raw(
      (sql) => sql<DueLookup>`
        with due as materialized (select id from transaction_lookups where due_at <= ${iso(nowMs)}
          order by due_at limit ${limit} for update skip locked)
        update transaction_lookups l set attempts = l.attempts + 1, due_at = ${iso(untilMs)}
        from due where l.id = due.id returning l.id, l.attempts`,
    );
  }

  /** Makes a lookup due at `untilMs` (ms since 1970), and not before. */
  async postpone(id: string, untilMs: number): Promise<void> {
    await this.#database.run((k) =>
      k
        .updateTable('transaction_lookups')
        .set({ due_at: iso(untilMs) })
        .where('id', '=', id),
    );
  }
}

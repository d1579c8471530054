import { hash } from 'node:crypto';
import type { Insertable, Selectable } from 'kysely';
import type { Db } from '../../platform/database/database.ts';
import { columnAssignments, insertRows, rowSource, textArray } from '../../platform/database/row-sets.ts';
import type { UnscopedDatabase } from '../../platform/database/tenant-db.ts';
import type { Tables } from '../../tables/tables.ts';
import type { TransactionCollection } from '../../tables/transaction-content.ts';
import type { TransactionState } from './join.rules.ts';
import type { Delivery } from './notification.input.ts';
import { type RegisteredTransaction, registeredOfRow, type TransactionRow } from './transaction-view.rules.ts';

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
type ParkedRow = Pick<Selectable<Tables['parked_notifications']>, 'body' | 'correlation_id' | 'traceparent'>;

/**
 * Reads and writes the tables of the mirror, the local copy of transactions. Methods that write must run inside a
 * transaction.
 */
export class TransactionStore {
  readonly #database: UnscopedDatabase<Tables>;

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
  async park(deliveries: readonly (Delivery & { id: string })[]): Promise<void> {
    if (deliveries.length === 0) return;
    const rows = deliveries.map(({ id, body, correlationId, traceparent }) => {
      const bytes = { body_sha256: `\\x${hash('sha256', body)}`, body: `\\x${Buffer.from(body).toString('hex')}` };
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
      (sql) => sql<ParkedRow>`
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
    const rows = changed.map(({ id, state }) => ({ id, ...columnsOfState(state) }));
    await this.#database.raw(
      (sql) => sql`
        update transactions t set ${sql.raw(columnAssignments(STATE_COLUMNS))}
        from ${rowSource(sql, rows, { ...STATE_COLUMNS, id: ['id'] })} where t.id = given.id`,
    );
  }
}

/** Returns the columns that store a join state. */
function columnsOfState(state: TransactionState) {
  return {
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
  };
}

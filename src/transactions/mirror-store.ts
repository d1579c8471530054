import { hash } from 'node:crypto';
import type { Selectable } from 'kysely';
import type { Db } from '../db.ts';
import type { Tables } from '../entities.ts';
import { textArray } from '../lib/text-array.ts';
import type { TransactionState } from './join.rules.ts';
import { columnsOfState, type NewTransactionRow, stateOfRow, type TransactionRow } from './transaction-rows.ts';
import type { TransactionCollection } from './type-codes.rules.ts';

/** A notification as it was received: the body's bytes and the correlation id of the request that brought it. */
export interface Delivery {
  body: Uint8Array;
  correlationId: string;
  /** Where its trace goes on. */
  traceparent?: string | undefined;
}

/** A registered transaction and its join. */
export interface Known {
  id: string;
  nodeId: string;
  assetId: string | null;
  /** Registered by mutation: its owner may still say that it is of another node or collection. */
  isProvisional: boolean;
  state: TransactionState;
}

/** A registration: whose it is, what it is, and who says so. */
export type RegistrationRow = Pick<
  NewTransactionRow,
  'id' | 'node_id' | 'collection' | 'registered_type' | 'registered_by' | 'asset_id' | 'type'
>;

type ParkedRow = Pick<Selectable<Tables['parked_notifications']>, 'body' | 'correlation_id' | 'traceparent'>;

/** The tables of the mirror. What writes is to run inside of a transaction. */
export class MirrorStore {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /** Locks the rows that parking and registering share, in the order of the ids: nobody waits in a ring. */
  async lockIds(ids: readonly string[]): Promise<void> {
    const sorted = textArray(ids.toSorted());
    await this.#door().raw(
      (sql) => sql`
        insert into transaction_ids (id) select id from unnest(${sorted}::text[]) as i (id) on conflict do nothing`,
    );
    await this.#door().raw(
      (sql) => sql`select 1 from transaction_ids where id = any (${sorted}::text[]) order by id for update`,
    );
  }

  /**
   * Which of the ids their owner has registered in one of the collections. That never changes, and so needs no lock: what is
   * registered by its owner stays where it is.
   */
  async settledIn(collections: readonly TransactionCollection[], ids: readonly string[]): Promise<Set<string>> {
    const rows = await this.#door().raw(
      (sql) => sql<{ id: string }>`
        select id from transactions
        where id = any (${textArray(ids)}::text[]) and registered_by = 'topic'
          and collection = any (${textArray(collections)}::text[])`,
    );
    return new Set(rows.map(({ id }) => id));
  }

  async rows(ids: readonly string[]): Promise<TransactionRow[]> {
    return this.#door().raw(
      (sql) => sql<TransactionRow>`select * from transactions where id = any (${textArray(ids)}::text[])`,
    );
  }

  async load(ids: readonly string[]): Promise<Map<string, Known>> {
    return new Map((await this.rows(ids)).map((row) => [row.id, knownOfRow(row)]));
  }

  /** Inserts a registration, or replaces one; the join's columns are left to `save`. */
  async register(row: RegistrationRow): Promise<void> {
    await this.#door().run((k) =>
      k
        .insertInto('transactions')
        .values(row)
        .onConflict((conflict) => conflict.column('id').doUpdateSet(row)),
    );
  }

  /** Inserts registrations of ids that have none, in one statement. */
  async registerNew(rows: readonly RegistrationRow[]): Promise<void> {
    if (rows.length === 0) return;
    const column = (name: keyof RegistrationRow) => textArray(rows.map((row) => textOf(row[name])));
    await this.#door().raw(
      (sql) => sql`
        insert into transactions (id, node_id, collection, registered_type, registered_by, asset_id, type)
        select r.id, r.node_id::uuid, r.collection, r.registered_type::integer, r.registered_by, r.asset_id::uuid, r.type::integer
        from unnest(${column('id')}::text[], ${column('node_id')}::text[], ${column('collection')}::text[],
          ${column('registered_type')}::text[], ${column('registered_by')}::text[], ${column('asset_id')}::text[],
          ${column('type')}::text[]) as r (id, node_id, collection, registered_type, registered_by, asset_id, type)`,
    );
  }

  async removeEvents(id: string): Promise<void> {
    await this.#door().run((k) => k.deleteFrom('transaction_events').where('transaction_id', '=', id));
  }

  /** Keeps notifications by id and hash: the same one is kept once. */
  async park(deliveries: readonly (Delivery & { id: string })[]): Promise<void> {
    if (deliveries.length === 0) return;
    const hex = (bytes: readonly Uint8Array[]) => textArray(bytes.map((one) => Buffer.from(one).toString('hex')));
    const bodies = deliveries.map(({ body }) => body);
    const hashes = bodies.map((body) => hash('sha256', body, 'buffer'));
    await this.#door().raw(
      (sql) => sql`
        insert into parked_notifications (id, body_sha256, body, correlation_id, traceparent)
        select p.id, decode(p.body_sha256, 'hex'), decode(p.body, 'hex'), p.correlation_id, p.traceparent
        from unnest(${textArray(deliveries.map(({ id }) => id))}::text[], ${hex(hashes)}::text[], ${hex(bodies)}::text[],
          ${textArray(deliveries.map(({ correlationId }) => correlationId))}::text[],
          ${textArray(deliveries.map(({ traceparent }) => traceparent ?? null))}::text[])
          as p (id, body_sha256, body, correlation_id, traceparent)
        on conflict do nothing`,
    );
  }

  /** Takes out what is parked for the ids, in no order. */
  async takeParked(ids: readonly string[]): Promise<Delivery[]> {
    if (ids.length === 0) return [];
    const rows = await this.#door().raw(
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

  /** Writes the joins of registered transactions, all in one statement: the rows are there, what registration wrote of them stays. */
  async save(changed: readonly Known[]): Promise<void> {
    if (changed.length === 0) return;
    const rows = changed.map(({ state }) => columnsOfState(state));
    const column = (name: keyof (typeof rows)[number]) => textArray(rows.map((row) => textOf(row[name])));
    await this.#door().raw(
      (sql) => sql`
        update transactions t set
          type = j.type::integer, status = j.status::smallint, status_key = j.status_key, error = j.error,
          transaction_hash = j.transaction_hash, transaction_hash_key = j.transaction_hash_key,
          contract_address = j.contract_address, contract_address_key = j.contract_address_key,
          gas_used = j.gas_used::numeric, gas_used_key = j.gas_used_key,
          created_text = j.created_text, created_seconds = j.created_seconds::bigint,
          created_nanos = j.created_nanos::integer,
          updated_text = j.updated_text, updated_seconds = j.updated_seconds::bigint,
          updated_nanos = j.updated_nanos::integer,
          done_seen = j.done_seen::boolean, error_seen = j.error_seen::boolean
        from unnest(${textArray(changed.map(({ id }) => id))}::text[],
          ${column('type')}::text[], ${column('status')}::text[], ${column('status_key')}::text[],
          ${column('error')}::text[], ${column('transaction_hash')}::text[], ${column('transaction_hash_key')}::text[],
          ${column('contract_address')}::text[], ${column('contract_address_key')}::text[],
          ${column('gas_used')}::text[], ${column('gas_used_key')}::text[],
          ${column('created_text')}::text[], ${column('created_seconds')}::text[], ${column('created_nanos')}::text[],
          ${column('updated_text')}::text[], ${column('updated_seconds')}::text[], ${column('updated_nanos')}::text[],
          ${column('done_seen')}::text[], ${column('error_seen')}::text[])
          as j (id, type, status, status_key, error, transaction_hash, transaction_hash_key, contract_address,
            contract_address_key, gas_used, gas_used_key, created_text, created_seconds, created_nanos, updated_text,
            updated_seconds, updated_nanos, done_seen, error_seen)
        where t.id = j.id`,
    );
  }

  #door() {
    return this.#db.unscoped('notifications name ids of every node');
  }
}

export function knownOfRow(row: TransactionRow): Known {
  const { id, node_id: nodeId, asset_id: assetId, registered_by: by } = row;
  return { id, nodeId, assetId, isProvisional: by === 'mutation', state: stateOfRow(row) };
}

function textOf(value: string | number | boolean | null | undefined): string | null {
  return value === null || value === undefined ? null : String(value);
}

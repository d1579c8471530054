import { hash } from 'node:crypto';
import type { Insertable, Selectable } from 'kysely';
import { instantToIsoMillis } from '../../lib/instants.ts';
import type { Db } from '../../platform/database/database.ts';
import { textArray } from '../../platform/database/sql-state.ts';
import type { Tables } from '../../tables/tables.ts';
import { hasConflict, NO_KEY, type TransactionState } from './join.rules.ts';
import type { ReceivedTime } from './notification.input.ts';
import {
  isTransactionCollection,
  statusOfCode,
  type TransactionCollection,
  type TransactionStatus,
} from './type-codes.rules.ts';

export type TransactionRow = Selectable<Tables['transactions']>;

/** A transaction as the event log keeps it: as of one change. */
export interface TransactionSnapshot extends Record<string, unknown> {
  id: string;
  collection: string;
  type: number;
  status: TransactionStatus | null;
  transaction_hash: string;
  contract_address: string;
  /** A decimal string: it can be any uint64. */
  gas_used: string;
  error: string | null;
  conflict: boolean;
  /** ISO 8601 in UTC with milliseconds. */
  created_at: string | null;
  updated_at: string | null;
}

/** The join state that a row keeps. */
export function stateOfRow(row: TransactionRow): TransactionState {
  const { collection } = row;
  if (!isTransactionCollection(collection)) throw new Error(`the row ${row.id} has no collection of ours`);
  return {
    collection,
    registeredType: row.registered_type,
    type: row.type,
    status: row.status === null ? null : statusOfCode(row.status),
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

/** The columns of a join state. */
function columnsOfState(state: TransactionState) {
  return {
    collection: state.collection,
    registered_type: state.registeredType,
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

/** What readers are shown of a transaction. */
export function snapshotOf(id: string, state: TransactionState): TransactionSnapshot {
  return {
    id,
    collection: state.collection,
    type: state.type,
    status: state.status,
    transaction_hash: state.transactionHash,
    contract_address: state.contractAddress,
    gas_used: state.gasUsed.toString(),
    error: state.error,
    conflict: hasConflict(state),
    created_at: state.createdAt && instantToIsoMillis(state.createdAt),
    updated_at: state.updatedAt && instantToIsoMillis(state.updatedAt),
  };
}

/** The same of a row. */
export function snapshotOfRow(row: TransactionRow): TransactionSnapshot {
  return snapshotOf(row.id, stateOfRow(row));
}

function receivedTime(text: string | null, seconds: string | null, nanos: number | null): ReceivedTime | null {
  return text === null || seconds === null || nanos === null ? null : { text, seconds: BigInt(seconds), nanos };
}

/** A notification as it was received: the body's bytes and the correlation id of the request that brought it. */
export interface Delivery {
  body: Uint8Array;
  correlationId: string;
  /** Where its trace goes on. */
  traceparent?: string | undefined;
}

/** A registered transaction and its join. */
export interface RegisteredTransaction {
  id: string;
  nodeId: string;
  assetId: string | null;
  /** Registered by mutation: its owner may still say that it is of another node or collection. */
  isProvisional: boolean;
  state: TransactionState;
}

/** A registration: whose it is, what it is, and who says so. */
export type RegistrationRow = Pick<
  Insertable<Tables['transactions']>,
  'id' | 'node_id' | 'collection' | 'registered_type' | 'registered_by' | 'asset_id' | 'type'
>;

type ParkedRow = Pick<Selectable<Tables['parked_notifications']>, 'body' | 'correlation_id' | 'traceparent'>;

/** The tables of the mirror. What writes is to run inside of a transaction. */
export class TransactionStore {
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

  async load(ids: readonly string[]): Promise<Map<string, RegisteredTransaction>> {
    return new Map((await this.rows(ids)).map((row) => [row.id, registeredOfRow(row)]));
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
  async save(changed: readonly RegisteredTransaction[]): Promise<void> {
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

export function registeredOfRow(row: TransactionRow): RegisteredTransaction {
  const { id, node_id: nodeId, asset_id: assetId, registered_by: by } = row;
  return { id, nodeId, assetId, isProvisional: by === 'mutation', state: stateOfRow(row) };
}

function textOf(value: string | number | boolean | null | undefined): string | null {
  return value === null || value === undefined ? null : String(value);
}

import { hash } from 'node:crypto';
import type { Insertable, Selectable } from 'kysely';
import type { Db } from '../../platform/database/database.ts';
import { givenRows, givenValues, insertRows, textArray, textColumn } from '../../platform/database/row-sets.ts';
import type { UnscopedDatabase } from '../../platform/database/tenant-db.ts';
import type { Tables } from '../../tables/tables.ts';
import type { TransactionState } from './join.rules.ts';
import type { Delivery } from './notification.input.ts';
import {
  type RegisteredTransaction,
  registeredOfRow,
  type TransactionRow,
  type TransactionSnapshot,
} from './transaction-view.rules.ts';
import type { TransactionCollection, TransactionStatus } from './type-codes.rules.ts';

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
const EVENT_COLUMNS = {
  uuid: ['node_id'],
  bigint: ['seq'],
  text: ['transaction_id', 'correlation_id', 'traceparent'],
  smallint: ['status', 'previous_status'],
  jsonb: ['transaction'],
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

  async removeEvents(id: string): Promise<void> {
    await this.#database.run((k) => k.deleteFrom('transaction_events').where('transaction_id', '=', id));
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
        update transactions t set ${sql.raw(givenValues(STATE_COLUMNS))}
        from ${givenRows(sql, rows, { ...STATE_COLUMNS, id: ['id'] })} where t.id = given.id`,
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

/** An event to append, with the state of the transaction right after it. */
export interface NewEvent {
  nodeId: string;
  transactionId: string;
  status: TransactionStatus;
  previousStatus: TransactionStatus | null;
  correlationId: string;
  /** The W3C trace context of the change; undefined when it has none. */
  traceparent?: string | undefined;
  transaction: TransactionSnapshot;
}

/**
 * Appends events to the event logs of their tenants, as the last step of the applying transaction. It locks the
 * tenants' counters in the order of their ids, so that sequence numbers follow commit order and appenders cannot
 * deadlock. On a new timeline the numbers continue after the ones that the server may have lost, which are never
 * reused: a reader behind one of them would miss what is new. Returns the last sequence number of each tenant.
 */
export async function appendEvents(db: Db, events: readonly NewEvent[]): Promise<Map<string, bigint>> {
  if (events.length === 0) return new Map();
  const unscoped = db.unscoped('a batch has events of several nodes');
  const byNode = Map.groupBy(events, (event) => event.nodeId);
  const counts = Array.from(byNode, ([nodeId, ofNode]) => ({ nodeId, count: ofNode.length }));
  const counters = await unscoped.raw(
    (sql) => sql<{ node_id: string; seq: string }>`
      insert into node_event_seq as known (node_id, seq, timeline)
      select node_id::uuid, count::bigint, ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::integer
      from unnest(${textColumn(counts, 'nodeId')}::text[], ${textColumn(counts, 'count')}::text[]) as given (node_id, count)
      order by node_id
      on conflict (node_id) do update set
        seq = excluded.seq
          + case when known.timeline <> excluded.timeline then (known.seq / 4294967296 + 1) * 4294967296 else known.seq end,
        timeline = excluded.timeline
      returning node_id, seq`,
  );
  const last = new Map(counters.map(({ node_id, seq }) => [node_id, BigInt(seq)]));
  const rows = [...byNode].flatMap(([nodeId, ofNode]) => {
    const before = (last.get(nodeId) ?? 0n) - BigInt(ofNode.length);
    return ofNode.map((event, index) => ({
      node_id: nodeId,
      seq: before + BigInt(index + 1),
      transaction_id: event.transactionId,
      status: event.status,
      previous_status: event.previousStatus,
      correlation_id: event.correlationId,
      transaction: JSON.stringify(event.transaction),
      traceparent: event.traceparent,
    }));
  });
  await unscoped.raw((sql) => insertRows(sql, 'transaction_events', rows, EVENT_COLUMNS));
  return last;
}

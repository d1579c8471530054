import { createHash } from 'node:crypto';
import type { Db } from '../db.ts';
import type { TransactionState } from './join.rules.ts';
import { columnsOfState, type NewTransactionRow, stateOfRow, type TransactionRow } from './transaction-rows.ts';

/** A notification as it was received: the body's bytes and the correlation id of the request that brought it. */
export interface Delivery {
  body: Uint8Array;
  correlationId: string;
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

/** The tables of the mirror. Every method is to run inside of a transaction. */
export class MirrorStore {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /** Locks the rows that parking and registering share, in the order of the ids: nobody waits in a ring. */
  async lockIds(ids: readonly string[]): Promise<void> {
    const rows = ids.toSorted().map((id) => ({ id }));
    await this.#door().run((k) =>
      k
        .insertInto('transaction_ids')
        .values(rows)
        .onConflict((conflict) => conflict.doNothing()),
    );
    await this.#door().run((k) =>
      k.selectFrom('transaction_ids').select('id').where('id', 'in', ids).orderBy('id').forUpdate(),
    );
  }

  async rows(ids: readonly string[]): Promise<TransactionRow[]> {
    return this.#door().run((k) => k.selectFrom('transactions').selectAll().where('id', 'in', ids));
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

  async removeEvents(id: string): Promise<void> {
    await this.#door().run((k) => k.deleteFrom('transaction_events').where('transaction_id', '=', id));
  }

  /** Keeps notifications by id and hash: the same one is kept once. */
  async park(deliveries: readonly (Delivery & { id: string })[]): Promise<void> {
    if (deliveries.length === 0) return;
    const rows = deliveries.map(({ id, body, correlationId }) => ({
      id,
      body_sha256: createHash('sha256').update(body).digest(),
      body,
      correlation_id: correlationId,
    }));
    await this.#door().run((k) =>
      k
        .insertInto('parked_notifications')
        .values(rows)
        .onConflict((conflict) => conflict.doNothing()),
    );
  }

  /** Takes out what is parked for the ids, oldest first. */
  async takeParked(ids: readonly string[]): Promise<Delivery[]> {
    if (ids.length === 0) return [];
    const rows = await this.#door().run((k) =>
      k.deleteFrom('parked_notifications').where('id', 'in', ids).returningAll(),
    );
    return rows
      .toSorted((a, b) => (a.parked_at < b.parked_at ? -1 : 1))
      .map((row) => ({ body: row.body, correlationId: row.correlation_id }));
  }

  /** Writes the joins of registered transactions, all in one statement. */
  async save(changed: readonly Known[]): Promise<void> {
    const rows = changed.map(({ id, nodeId, assetId, state }) => ({
      id,
      node_id: nodeId,
      registered_by: 'mutation' as const,
      asset_id: assetId,
      ...columnsOfState(state),
    }));
    const [first] = changed;
    if (!first) return;
    // The rows are there; what registration wrote of them stays.
    const columns = Object.keys(columnsOfState(first.state));
    await this.#door().run((k) =>
      k
        .insertInto('transactions')
        .values(rows)
        .onConflict((conflict) =>
          conflict
            .column('id')
            .doUpdateSet((eb) =>
              Object.fromEntries(columns.map((column) => [column, eb.ref(`excluded.${column}` as 'excluded.id')])),
            ),
        ),
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

import type { Db, UnscopedDatabase } from '../../platform/database/database.ts';
import { insertRows } from '../../platform/database/row-sets.ts';
import {
  isOfNode,
  type KnownState,
  type ParentColumn,
  type ReferenceChange,
  type ReferenceKind,
  type ReferenceRow,
  TABLES,
  type Tombstone,
} from './reference.rules.ts';

/**
 * What the database holds about one id, with its tenant; `nodeId` is null for a kind without tenants and for an id
 * without a row.
 */
export interface StoredState extends KnownState {
  nodeId: string | null;
}

/** A row to write, with its id and version. */
export interface VersionedRow {
  id: string;
  version: bigint;
  row: ReferenceRow;
}

/** A row whose parent is missing (`waitsFor`), or one that can never be applied (`reason`). */
export interface ParkedRow extends VersionedRow {
  waitsFor: { kind: ReferenceKind; id: string } | undefined;
  reason: string | undefined;
}

interface StateRow {
  id: string;
  node_id: string | null;
  version: string | null;
  dead_version: string | null;
  log_offset: string | null;
  log_time_ms: string | null;
}

const PARKED_COLUMNS = {
  text: ['kind', 'waits_for_kind', 'reason'],
  uuid: ['id', 'waits_for_id'],
  bigint: ['version'],
  jsonb: ['value'],
} as const;

/** The contract address of an asset, which a transaction may have given it. */
const SETTLED = 'case when r.contract_settled then r.contract_address else excluded.contract_address end';
const LOCK = 72_050_012;

/**
 * Reads and writes the tables of reference data, many rows in one statement. Every method must run inside a
 * transaction.
 */
export class ReferenceStore {
  readonly #database: UnscopedDatabase;

  constructor(db: Db) {
    this.#database = db.unscoped('reference data of all nodes');
  }

  /**
   * Takes the advisory lock of reference data until the end of the transaction. Many may hold it shared and write; only
   * an exclusive holder parks or deletes rows, so that no parent is inserted and no child is missed meanwhile.
   */
  async lock(isExclusive: boolean): Promise<void> {
    await this.#database.raw((sql) =>
      isExclusive ? sql`select pg_advisory_xact_lock(${LOCK})` : sql`select pg_advisory_xact_lock_shared(${LOCK})`,
    );
  }

  /**
   * Locks the table of transactions against writes. Transactions written later then see the assets that are about to be
   * inserted.
   */
  async lockTransactions(): Promise<void> {
    await this.#database.raw((sql) => sql`lock table transactions in share mode`);
  }

  /** Returns the known state of each id; an id of which nothing is known is not in the map. */
  async states(kind: ReferenceKind, ids: readonly string[]): Promise<Map<string, StoredState>> {
    const rows = await this.#database.raw<StateRow>((sql) => {
      const nodeId = isOfNode(kind) ? sql`r.node_id` : sql`null::uuid`;
      return sql<StateRow>`
        select k.id, ${nodeId} as node_id, greatest(r.version, p.version) as version, t.version as dead_version,
          t.log_offset, t.log_time_ms
        from unnest(${ids}::uuid[]) as k (id)
        left join ${sql.table(TABLES[kind].table)} r on r.id = k.id
        left join reference_parked p on p.kind = ${kind} and p.id = k.id
        left join reference_tombstones t on t.kind = ${kind} and t.id = k.id
        where coalesce(r.id, p.id, t.id) is not null`;
    });
    return new Map(rows.map((row) => [row.id, stateOf(row)]));
  }

  /** Returns the ids that have a row, each with its tenant, or null for a kind without tenants. */
  async existing(kind: ReferenceKind, ids: readonly string[]): Promise<Map<string, string | null>> {
    const rows = await this.#database.raw((sql) => {
      const nodeId = isOfNode(kind) ? sql`node_id` : sql`null::uuid`;
      const table = sql.table(TABLES[kind].table);
      return sql<{ id: string; node_id: string | null }>`
        select id, ${nodeId} as node_id from ${table} where id = any(${ids}::uuid[])`;
    });
    return new Map(rows.map((row) => [row.id, row.node_id]));
  }

  /**
   * Inserts rows, or replaces rows with a lower version. A contract address that a transaction gave to an asset is not
   * replaced.
   */
  async upsert(kind: ReferenceKind, rows: readonly VersionedRow[]): Promise<void> {
    if (rows.length === 0) return;
    const { table, columns } = TABLES[kind];
    const byType = Object.groupBy(Object.keys(columns), (name) => columns[name] ?? 'text');
    const columnsByType = { ...byType, uuid: ['id', ...(byType.uuid ?? [])], bigint: ['version'] };
    const updates = ['version', ...Object.keys(columns).filter((name) => name !== 'node_id')].map((name) => {
      const isSettled = kind === 'assets' && name === 'contract_address';
      return `${name} = ${isSettled ? SETTLED : `excluded.${name}`}`;
    });
    // Sorted by id, so that concurrent writers cannot deadlock.
    const sorted = rows.toSorted((a, b) => (a.id < b.id ? -1 : 1));
    const records = sorted.map(({ id, version, row }): Record<string, unknown> => ({ ...row, id, version }));
    await this.#database.raw(
      (sql) => sql`
        ${insertRows(sql, `${table} as r`, records, columnsByType)}
        on conflict (id) do update set ${sql.raw(updates.join(', '))} where excluded.version > r.version`,
    );
  }

  /** Deletes the rows that nothing refers to. Rows still referred to stay until a later deletion. */
  async delete(kind: ReferenceKind, ids: readonly string[]): Promise<void> {
    const { table } = TABLES[kind];
    if (ids.length > 0) await this.#database.raw((sql) => sql`select delete_unreferenced(${table}, ${ids}::uuid[])`);
  }

  async setDeletedAt(ids: readonly string[], at: string): Promise<void> {
    await this.#database.raw(
      (sql) => sql`
        update accounts set deleted_at = ${at}::timestamptz where id = any(${ids}::uuid[]) and deleted_at is null`,
    );
  }

  /** Returns the ids that have a tombstone but still a row, because other rows referred to it. */
  async undead(kind: ReferenceKind): Promise<string[]> {
    const rows = await this.#database.raw(
      (sql) => sql<{ id: string }>`
        select t.id from reference_tombstones t join ${sql.table(TABLES[kind].table)} r on r.id = t.id
        where t.kind = ${kind} and r.version <= t.version`,
    );
    return rows.map(({ id }) => id);
  }

  async saveTombstones(kind: ReferenceKind, tombstones: ReadonlyMap<string, Tombstone>): Promise<void> {
    if (tombstones.size === 0) return;
    const rows = [...tombstones].map(([id, { version, position }]) => ({
      kind,
      id,
      version: version.toString(),
      log_offset: position?.offset.toString() ?? null,
      log_time_ms: position?.timeMs.toString() ?? null,
    }));
    await this.#database.run((k) =>
      k
        .insertInto('reference_tombstones')
        .values(rows)
        .onConflict((conflict) =>
          conflict.columns(['kind', 'id']).doUpdateSet((eb) => ({
            version: eb.ref('excluded.version'),
            log_offset: eb.ref('excluded.log_offset'),
            log_time_ms: eb.ref('excluded.log_time_ms'),
          })),
        ),
    );
  }

  /** Parks rows. Rows parked earlier for the same ids must have been removed before. */
  async park(kind: ReferenceKind, rows: readonly ParkedRow[]): Promise<void> {
    if (rows.length === 0) return;
    const records = rows.map(({ id, version, row, waitsFor, reason }) => ({
      kind,
      id,
      version,
      value: JSON.stringify(row),
      waits_for_kind: waitsFor?.kind,
      waits_for_id: waitsFor?.id,
      reason,
    }));
    await this.#database.raw((sql) => insertRows(sql, 'reference_parked', records, PARKED_COLUMNS));
  }

  async unpark(kind: ReferenceKind, ids: readonly string[]): Promise<void> {
    await this.#database.raw(
      (sql) => sql`delete from reference_parked where kind = ${kind} and id = any(${ids}::uuid[])`,
    );
  }

  async countWaiting(): Promise<number> {
    const [row] = await this.#database.raw(
      (sql) => sql<{ waiting: number }>`
        select count(*)::integer as waiting from reference_parked where waits_for_id is not null`,
    );
    return row?.waiting ?? 0;
  }

  /** Removes and returns the parked rows that wait for these parents. */
  async takeWaiting(parent: ReferenceKind, ids: readonly string[]): Promise<ReferenceChange[]> {
    const rows = await this.#database.raw(
      (sql) => sql<{ kind: ReferenceKind; id: string; version: string; value: ReferenceRow }>`
        delete from reference_parked where waits_for_kind = ${parent} and waits_for_id = any(${ids}::uuid[])
        returning kind, id, version, value`,
    );
    return rows.map(({ kind, id, version, value }) => ({ kind, id, version: BigInt(version), row: value }));
  }

  /** Returns the given assets that transactions refer to. */
  async withTransactions(assetIds: readonly string[]): Promise<string[]> {
    const rows = await this.#database.raw(
      (sql) => sql<{ asset_id: string }>`
        select distinct asset_id from transactions where asset_id = any(${assetIds}::uuid[])`,
    );
    return rows.map((row) => row.asset_id);
  }
}

/** Returns the id of the parent that a row names in a column. */
export function parentOf({ column }: ParentColumn, row: ReferenceRow): string {
  return String(row[column]);
}

function stateOf({
  node_id: nodeId,
  version,
  dead_version: dead,
  log_offset: offset,
  log_time_ms: timeMs,
}: StateRow): StoredState {
  const position = offset === null || timeMs === null ? undefined : { offset: BigInt(offset), timeMs: BigInt(timeMs) };
  return {
    nodeId,
    version: version === null ? undefined : BigInt(version),
    tombstone: dead === null ? undefined : { version: BigInt(dead), position },
  };
}

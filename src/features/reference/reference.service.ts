import { REFERENCE_KINDS } from '../../events/bus/topics.ts';
import type { Db } from '../../platform/database/database.ts';
import { sqlState, UNIQUE_VIOLATION } from '../../platform/errors.ts';
import { settleAssets } from '../transactions/asset-settlement.service.ts';
import {
  isParent,
  outcomeOf,
  type ParentColumn,
  type ReferenceChange,
  type ReferenceKind,
  TABLES,
  type Tombstone,
} from './reference.rules.ts';
import { type ParkedRow, parentOf, ReferenceStore, type StoredState, type VersionedRow } from './reference.store.ts';

/**
 * The result of applying changes. A change that is counted nowhere had no effect: its version was not higher, or it was
 * a repeated tombstone.
 */
interface Applied {
  /** The number of rows written or deleted. */
  applied: number;
  /** The number of rows parked until their parent arrives. */
  parked: number;
  rejected: { index: number; reason: string }[];
}

/** The index of a change in the given array; undefined for a row that had been parked earlier. */
interface Indexed {
  index: number | undefined;
}

type IndexedChange = ReferenceChange & Indexed;
type IndexedRow = VersionedRow & Indexed;
type Orphan = ParkedRow & Indexed;

/** Called when a parked row turns out to be impossible once its parent has arrived. */
export type ReferenceDropped = (kind: ReferenceKind, id: string, reason: string) => void;

interface ReferenceDependencies {
  db: Db;
  nowMs: () => number;
  dropped?: ReferenceDropped;
}

/** Thrown to roll the work back and repeat it with the exclusive lock. */
class NeedsExclusiveLockError extends Error {
  override name = 'NeedsExclusiveLockError';
}

/** Applies one array of changes inside a transaction. */
class ReferenceApplication {
  readonly #store: ReferenceStore;
  readonly #deps: ReferenceDependencies;
  /** Whether the exclusive lock is held. Rows are parked and deleted only then. */
  readonly #isExclusive: boolean;
  #queues = new Map<ReferenceKind, IndexedChange[]>();
  readonly #deleted = new Map<ReferenceKind, string[]>();
  readonly #applied: Applied = { applied: 0, parked: 0, rejected: [] };
  /** The ids of the assets that were written. */
  readonly assetIds: string[] = [];

  constructor(store: ReferenceStore, deps: ReferenceDependencies, isExclusive: boolean) {
    this.#store = store;
    this.#deps = deps;
    this.#isExclusive = isExclusive;
  }

  /**
   * Applies the changes; called once.
   * @throws NeedsExclusiveLockError when the changes can only be applied with the exclusive lock.
   */
  async run(changes: readonly ReferenceChange[]): Promise<Applied> {
    const indexed = changes.map((change, index): IndexedChange => ({ ...change, index }));
    this.#queues = Map.groupBy(indexed, ({ kind }) => kind);
    // Parents come before children, so that the children they release are handled later in the same loop.
    for (const kind of REFERENCE_KINDS) await this.#applyKind(kind, this.#queues.get(kind) ?? []);
    if (this.#deleted.size > 0) await this.#deleteRows();
    return this.#applied;
  }

  async #applyKind(kind: ReferenceKind, changes: readonly IndexedChange[]): Promise<void> {
    if (changes.length === 0) return;
    const byId = Map.groupBy(changes, ({ id }) => id);
    const states = await this.#store.states(kind, [...byId.keys()]);
    const tombstones = new Map<string, Tombstone>();
    const deleted: string[] = [];
    const rows: IndexedRow[] = [];
    const lastRows: IndexedRow[] = [];
    for (const [id, ofId] of byId) {
      const state = states.get(id);
      const fit = ofId.filter((change) => this.#staysInNode(change, state));
      const outcome = outcomeOf(state ?? { version: undefined, tombstone: undefined }, fit);
      if (outcome.tombstone) tombstones.set(id, outcome.tombstone);
      if (outcome.isDeleted) deleted.push(id);
      if (!outcome.row) continue;
      const row = { id, ...outcome.row, index: fit[outcome.row.index]?.index };
      (outcome.isDeleted ? lastRows : rows).push(row);
    }
    // The row of a deleted account stays in the table, in its last version before the tombstone.
    if (kind === 'accounts' && lastRows.length > 0) await this.#write(kind, lastRows, states);
    if (tombstones.size > 0) await this.#bury(kind, tombstones, deleted);
    if (rows.length > 0) await this.#write(kind, rows, states);
  }

  /** Checks whether a change leaves its row with the same tenant; rejects the change if not. */
  #staysInNode({ kind, id, row, index }: IndexedChange, state: StoredState | undefined): boolean {
    const nodeId = state?.nodeId ?? null;
    if (row === undefined || nodeId === null || row.node_id === nodeId) return true;
    this.#refuse(kind, { id, index }, 'a row cannot move to another tenant');
    return false;
  }

  #refuse(kind: ReferenceKind, { id, index }: Indexed & { id: string }, reason: string): void {
    if (index === undefined) this.#deps.dropped?.(kind, id, reason);
    else this.#applied.rejected.push({ index, reason });
  }

  async #bury(kind: ReferenceKind, tombstones: Map<string, Tombstone>, deleted: string[]): Promise<void> {
    await this.#store.saveTombstones(kind, tombstones);
    await this.#store.unpark(kind, [...tombstones.keys()]);
    if (kind === 'accounts') await this.#store.setDeletedAt(deleted, new Date(this.#deps.nowMs()).toISOString());
    else this.#deleted.set(kind, deleted);
    this.#applied.applied += deleted.length;
  }

  /**
   * Deletes rows, children first. A parent with a tombstone that was still referred to is deleted with its last child.
   */
  async #deleteRows(): Promise<void> {
    for (const kind of REFERENCE_KINDS.toReversed()) {
      const ids = this.#deleted.get(kind) ?? [];
      if (kind !== 'accounts') await this.#store.delete(kind, isParent(kind) ? await this.#store.undead(kind) : ids);
    }
  }

  async #write(kind: ReferenceKind, rows: IndexedRow[], states: ReadonlyMap<string, StoredState>): Promise<void> {
    const orphans = await this.#orphans(kind, rows);
    const parked = [...orphans.values()].filter(({ waitsFor }) => waitsFor !== undefined);
    const impossible = [...orphans.values()].filter(({ waitsFor }) => waitsFor === undefined);
    if (parked.length > 0 && !this.#isExclusive) throw new NeedsExclusiveLockError();
    for (const orphan of impossible) this.#refuse(kind, orphan, orphan.reason ?? '');
    const writableRows = rows.filter(({ id }) => !orphans.has(id));
    // Removes the parked lower versions of the same ids.
    const known = [...writableRows, ...parked].filter(({ id }) => states.has(id)).map(({ id }) => id);
    if (known.length > 0) await this.#store.unpark(kind, known);
    // A released row that cannot be applied stays parked with the reason, for an operator to see.
    await this.#store.park(kind, [...parked, ...impossible.filter(({ index }) => index === undefined)]);
    if (kind === 'assets') {
      await this.#store.lockTransactions();
      this.assetIds.push(...writableRows.map(({ id }) => id));
    }
    await this.#store.upsert(kind, writableRows);
    this.#applied.applied += writableRows.length;
    this.#applied.parked += parked.length;
    await this.#release(kind, writableRows);
  }

  /** Queues the parked rows that waited for these parents, ahead of the changes now given for the same ids. */
  async #release(kind: ReferenceKind, parentRows: readonly IndexedRow[]): Promise<void> {
    if (!isParent(kind) || parentRows.length === 0) return;
    const ids = parentRows.map(({ id }) => id);
    for (const change of await this.#store.takeWaiting(kind, ids)) {
      const queue = this.#queues.get(change.kind) ?? [];
      this.#queues.set(change.kind, [{ ...change, index: undefined }, ...queue]);
    }
  }

  /** Finds the rows that lack a parent of their own tenant; returns them by id, each with its first missing parent. */
  async #orphans(kind: ReferenceKind, rows: readonly IndexedRow[]): Promise<Map<string, Orphan>> {
    const orphans = new Map<string, Orphan>();
    for (const parent of TABLES[kind].parents) {
      const candidates = rows.filter(({ id }) => !orphans.has(id));
      const parentIds = [...new Set(candidates.map(({ row }) => parentOf(parent, row)))];
      if (parentIds.length === 0) break;
      const parentNodeIds = await this.#store.existing(parent.kind, parentIds);
      for (const row of candidates) {
        const missingParent = lackOf(parent, row, parentNodeIds);
        if (missingParent) orphans.set(row.id, { ...row, ...missingParent });
      }
    }
    return orphans;
  }
}

/**
 * Returns what is wrong with a row's parent; undefined when the parent exists and belongs to the same tenant or to
 * none.
 */
function lackOf(
  parent: ParentColumn,
  { row }: VersionedRow,
  parentNodeIds: ReadonlyMap<string, string | null>,
): Pick<Orphan, 'waitsFor' | 'reason'> | undefined {
  const id = parentOf(parent, row);
  const nodeId = parentNodeIds.get(id);
  if (nodeId === undefined) return { waitsFor: { kind: parent.kind, id }, reason: undefined };
  if (nodeId === null || nodeId === row.node_id) return undefined;
  return { waitsFor: undefined, reason: `${parent.column} names a row of another tenant` };
}

/**
 * Stores the platform's reference data: nodes (tenants), chains, networks, currencies, accounts, wallets and assets.
 */
export class Reference {
  readonly #deps: ReferenceDependencies;
  readonly #store: ReferenceStore;

  constructor(deps: ReferenceDependencies) {
    this.#deps = deps;
    this.#store = new ReferenceStore(deps.db);
  }

  /**
   * Applies changes of any kinds in one transaction (docs/contract.md, D1-10). The higher version wins, a tombstone
   * deletes, and a row whose parent is missing is parked. Rows give the same final state in any order and however often
   * repeated; a tombstone deletes the versions that are known when it is applied.
   */
  async apply(changes: readonly ReferenceChange[]): Promise<Applied> {
    const isExclusive = changes.some(({ row }) => row === undefined);
    try {
      return await this.#attempt(changes, isExclusive);
    } catch (error) {
      // Two concurrent inserts of one id can conflict in a unique index other than the one that ON CONFLICT names.
      if (!(error instanceof NeedsExclusiveLockError) && (isExclusive || sqlState(error) !== UNIQUE_VIOLATION))
        throw error;
      return this.#attempt(changes, true);
    }
  }

  /** Returns the number of rows that wait for a parent. */
  async waiting(): Promise<number> {
    return this.#store.countWaiting();
  }

  #attempt(changes: readonly ReferenceChange[], isExclusive: boolean): Promise<Applied> {
    const { db } = this.#deps;
    return db.transaction(async () => {
      await this.#store.lock(isExclusive);
      const work = new ReferenceApplication(this.#store, this.#deps, isExclusive);
      const applied = await work.run(changes);
      if (work.assetIds.length > 0) await settleAssets(db, await this.#store.withTransactions(work.assetIds));
      return applied;
    });
  }
}

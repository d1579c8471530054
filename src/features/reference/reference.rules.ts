import { PoisonError } from '../../events/bus/event-bus.ts';
import { REFERENCE_KINDS } from '../../events/bus/topics.ts';

export type ReferenceKind = (typeof REFERENCE_KINDS)[number];

/** A foreign key of a row: its column and the kind of its parent. */
export interface ParentColumn {
  column: string;
  kind: ReferenceKind;
}

const owned = { node_id: 'uuid', created_at: 'timestamptz', updated_at: 'timestamptz' } as const;
const node: ParentColumn = { column: 'node_id', kind: 'nodes' };

/** The table, columns and parents of each kind. */
export const TABLES: Readonly<
  Record<
    ReferenceKind,
    {
      table: string;
      /**
       * The columns other than `id` and `version`, with their types; a row has members of the same names. An update writes
       * all of them except `node_id`.
       */
      columns: Readonly<Record<string, 'uuid' | 'text' | 'integer' | 'timestamptz'>>;
      parents: readonly ParentColumn[];
    }
  >
> = {
  nodes: { table: 'nodes', columns: { name: 'text' }, parents: [] },
  chains: { table: 'chains', columns: { name: 'text' }, parents: [] },
  networks: {
    table: 'networks',
    columns: { chain_id: 'uuid', name: 'text', explorer_url: 'text' },
    parents: [{ column: 'chain_id', kind: 'chains' }],
  },
  currencies: {
    table: 'network_currencies',
    columns: { network_id: 'uuid', symbol: 'text', name: 'text', decimals: 'integer' },
    parents: [{ column: 'network_id', kind: 'networks' }],
  },
  accounts: {
    table: 'accounts',
    columns: { ...owned, name: 'text', type: 'text', status: 'integer', deleted_at: 'timestamptz' },
    parents: [node],
  },
  wallets: {
    table: 'wallets',
    columns: { ...owned, account_id: 'uuid', chain_id: 'uuid' },
    parents: [node, { column: 'chain_id', kind: 'chains' }, { column: 'account_id', kind: 'accounts' }],
  },
  assets: {
    table: 'assets',
    columns: {
      ...owned,
      name: 'text',
      symbol: 'text',
      type: 'text',
      network_id: 'uuid',
      contract_address: 'text',
      status: 'text',
    },
    parents: [node, { column: 'network_id', kind: 'networks' }],
  },
};

/** Checks whether the rows of a kind belong to a tenant. Such a row never moves to another tenant. */
export function isOfNode(kind: ReferenceKind): boolean {
  return 'node_id' in TABLES[kind].columns;
}

/** Checks whether rows of other kinds refer to rows of this kind. */
export function isParent(kind: ReferenceKind): boolean {
  return Object.values(TABLES).some(({ parents }) => parents.some((parent) => parent.kind === kind));
}

/** Returns the kind of reference data that a topic carries; undefined for any other topic. */
export function kindOfTopic(topic: string): ReferenceKind | undefined {
  return REFERENCE_KINDS.find((kind) => topic === `reference.${kind}`);
}

/**
 * The columns of a row other than its id and version, as written to the table. Times are ISO 8601 in UTC, to the
 * microsecond.
 */
export type ReferenceRow = Readonly<Record<string, string | number | null>>;

/** The position of a change in its topic: its offset, and its timestamp in milliseconds since 1970. */
export interface LogPosition {
  offset: bigint;
  timeMs: bigint;
}

/**
 * A change of one id: a row with its version, or, when both are undefined, a tombstone. Changes of one id come in the
 * order in which they were published.
 */
export interface ReferenceChange {
  kind: ReferenceKind;
  id: string;
  version: bigint | undefined;
  row: ReferenceRow | undefined;
  /** The position of a change that came by a topic; it tells a repeated tombstone from a new one. */
  position?: LogPosition | undefined;
  /** Whether the change is a replayed dead letter, so that later changes may have been applied before it. */
  isLate?: boolean;
}

/** Thrown for a message or line that no retry can make applicable. */
export class UnfitReferenceError extends PoisonError {
  override name = 'UnfitReferenceError';
}

/** A tombstone of an id: versions up to `version` stay deleted. The version is -1 when nothing was known of the id. */
export interface Tombstone {
  version: bigint;
  position: LogPosition | undefined;
}

/** The state of one id of reference data before a change. */
export interface KnownState {
  /** The highest version that was applied or parked; undefined when there is none. */
  version: bigint | undefined;
  tombstone: Tombstone | undefined;
}

/** The combined effect of the changes of one id. */
interface Outcome {
  /** The last row that outranked the earlier state, with its index among the changes. */
  row: { version: bigint; row: ReferenceRow; index: number } | undefined;
  /** The tombstone to store; undefined when no new one is among the changes. */
  tombstone: Tombstone | undefined;
  /** Whether the existing row must be deleted, and `row` with it. */
  isDeleted: boolean;
}

/**
 * Combines the changes of one id. The higher version wins; a tombstone deletes for good every version that was known
 * when it came. A repeated tombstone changes nothing, and a late row that was published before the tombstone is
 * deleted.
 */
export function outcomeOf(
  known: KnownState,
  changes: readonly Pick<ReferenceChange, 'version' | 'row' | 'position' | 'isLate'>[],
): Outcome {
  const outcome: Outcome = { row: undefined, tombstone: undefined, isDeleted: false };
  let { version = -1n, tombstone } = known;
  for (const [index, change] of changes.entries()) {
    const floor = tombstone && tombstone.version > version ? tombstone.version : version;
    if (change.version === undefined || change.row === undefined) {
      if (isRepeated(tombstone, change.position)) continue;
      tombstone = { version: floor, position: change.position };
      Object.assign(outcome, { tombstone, isDeleted: true });
    } else if (
      change.version > floor &&
      // A late row may have been published before the tombstone. Its version cannot decide that, because the tombstone did
      // not know of a row that could not be applied.
      !(change.isLate && change.position && change.position.offset < (tombstone?.position?.offset ?? 0n))
    ) {
      version = change.version;
      Object.assign(outcome, { row: { version, row: change.row, index }, isDeleted: false });
    }
  }
  return outcome;
}

/**
 * Checks whether a tombstone was applied before. Both its offset and its time must say so: offsets restart when a topic
 * is recreated, and the clocks of producers differ.
 */
function isRepeated(tombstone: Tombstone | undefined, position: LogPosition | undefined): boolean {
  const last = tombstone?.position;
  return (
    last !== undefined && position !== undefined && position.offset <= last.offset && position.timeMs <= last.timeMs
  );
}

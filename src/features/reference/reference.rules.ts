import type { LogPosition, ReferenceChange, ReferenceRow } from './reference-kinds.rules.ts';

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
    } else if (change.version > floor && !(change.isLate && precedes(change.position, tombstone?.position))) {
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

/**
 * Checks whether a late row was published before the tombstone. Its version cannot decide that, because the tombstone
 * did not know of a row that could not be applied.
 */
function precedes(position: LogPosition | undefined, tombstone: LogPosition | undefined): boolean {
  return position !== undefined && tombstone !== undefined && position.offset < tombstone.offset;
}

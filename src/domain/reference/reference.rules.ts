import type { LogPosition, ReferenceChange, ReferenceRow } from './reference-kinds.ts';

/** A tombstone: nothing up to `version` comes back. -1 where nothing was known of the id. */
export interface Tombstone {
  version: bigint;
  place: LogPosition | undefined;
}

/** What is known of an id before a change. */
export interface KnownState {
  /** The highest version that was applied or parked. */
  version: bigint | undefined;
  tombstone: Tombstone | undefined;
}

/** What the changes of one id come to, in their order. */
interface Outcome {
  /** The last row that outranked what was there. */
  row: { version: bigint; row: ReferenceRow; index: number } | undefined;
  /** The tombstone to remember, where one of the changes was one. */
  tombstone: Tombstone | undefined;
  /** Whether what there is is to go, that row too. */
  isDeleted: boolean;
}

/**
 * Folds the changes of one id: the higher version wins, and a tombstone deletes every version that was known when it
 * came, for good. A tombstone that the topic repeats changes nothing, and a late row that stood before the tombstone is deleted.
 */
export function outcomeOf(
  known: KnownState,
  changes: readonly Pick<ReferenceChange, 'version' | 'row' | 'place' | 'isLate'>[],
): Outcome {
  const outcome: Outcome = { row: undefined, tombstone: undefined, isDeleted: false };
  let { version = -1n, tombstone } = known;
  for (const [index, change] of changes.entries()) {
    const floor = tombstone && tombstone.version > version ? tombstone.version : version;
    if (change.version === undefined || change.row === undefined) {
      if (isRepeated(tombstone, change.place)) continue;
      tombstone = { version: floor, place: change.place };
      Object.assign(outcome, { tombstone, isDeleted: true });
    } else if (change.version > floor && !(change.isLate && stoodBefore(change.place, tombstone?.place))) {
      version = change.version;
      Object.assign(outcome, { row: { version, row: change.row, index }, isDeleted: false });
    }
  }
  return outcome;
}

/** Both must say so: offsets begin anew where a topic is made again, and the clocks of producers differ. */
function isRepeated(tombstone: Tombstone | undefined, place: LogPosition | undefined): boolean {
  const last = tombstone?.place;
  return last !== undefined && place !== undefined && place.offset <= last.offset && place.timeMs <= last.timeMs;
}

/** The tombstone knew nothing of a row that could not be applied then: its version says nothing of that one. */
function stoodBefore(place: LogPosition | undefined, tombstone: LogPosition | undefined): boolean {
  return place !== undefined && tombstone !== undefined && place.offset < tombstone.offset;
}

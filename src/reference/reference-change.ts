import type { ReferenceKind } from './reference-kinds.ts';

/** A row's columns beside its id and version, as they are written; times are ISO 8601 in UTC, to the microsecond. */
export type ReferenceRow = Readonly<Record<string, string | number | null>>;

/** Where a change stands in its topic's log. */
export interface LogPlace {
  offset: bigint;
  timeMs: bigint;
}

/** A row at a version, or, without one, a tombstone. Those of one key come in the order in which they were written. */
export interface ReferenceChange {
  kind: ReferenceKind;
  id: string;
  version: bigint | undefined;
  row: ReferenceRow | undefined;
  /** Known for what came by a topic: a repeated tombstone is told from a new one. */
  place?: LogPlace | undefined;
  /** Given once more out of its order: what came after it in the log may have been applied. */
  isLate?: boolean;
}

/** What no repeat makes applicable. */
export class UnfitReferenceError extends Error {
  override name = 'UnfitReferenceError';
}

import type { LoggedEvent } from './logged-event.ts';

/**
 * The log as its readers need it. Whoever has read up to `n` has seen every event up to `n`: numbers are given in
 * commit order, so none below the highest one that is visible appears later. A failing read is tried again.
 */
export interface EventLog {
  /** The first `limit` events of a node after `afterSeq`, in order. */
  readEvents(nodeId: string, afterSeq: bigint, limit: number): Promise<LoggedEvent[]>;
  /** The last number given in a node; 0 before the first event. */
  headSeq(nodeId: string): Promise<bigint>;
  /** The number of the oldest event that is kept; undefined where none is. */
  oldestKept(nodeId: string): Promise<bigint | undefined>;
}

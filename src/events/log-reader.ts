import type { BatchHandler } from './event-bus.ts';

/** What is to be read of one partition: from the offset `first` to the one before `end`; `count` messages at most. */
export interface PartitionSpan {
  partition: number;
  first: bigint;
  end: bigint;
  count: number;
}

/**
 * Which messages of a topic: those after an offset of each partition (of a partition that is not named: all that it
 * keeps), or those of a time, from the first offset that is of `fromMs` or later to before the first of `toMs` or later.
 */
export type Within = { after: ReadonlyMap<number, bigint> } | { fromMs: number; toMs: number };

export interface ReadOptions {
  topic: string;
  spans: readonly PartitionSpan[];
  /** What it rejects with ends the reading. */
  handle: BatchHandler;
  signal: AbortSignal;
}

/** Reads what a topic keeps, beside every consumer group, whose offsets stay as they are. */
export interface LogReader {
  /** What there is now; partitions without any are left out. */
  spans(topic: string, within: Within): Promise<PartitionSpan[]>;
  /**
   * Gives `handle` the messages of the spans once, batch by batch, those of one partition in their order. Resolves when
   * it has had them all, or when `signal` aborts and the running batch has ended.
   * @throws BusUnavailableError when nothing comes any more.
   */
  read(options: ReadOptions): Promise<void>;
}

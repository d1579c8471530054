/** A message on its way to a topic. Messages of one key keep their order; header values are UTF-8 text. */
export interface OutgoingMessage {
  topic: string;
  key: string;
  /** The bytes as they are; null is a tombstone. */
  value: Buffer | null;
  headers: Record<string, string>;
}

/** A message as read. A key that a foreign producer left out is the empty string. */
export interface IncomingMessage extends OutgoingMessage {
  partition: number;
  /** A decimal number that rises within a partition. */
  offset: string;
  timestampMs: number;
}

/**
 * Takes messages of one partition, in their order. When it resolves they have taken effect and are not given again,
 * a crash apart; when it rejects they are given again. Batches of different partitions may run at once.
 */
export type BatchHandler = (batch: IncomingMessage[]) => Promise<void>;

export interface SubscribeOptions {
  /** Each group receives every message; the members of a group share them. */
  groupId: string;
  topics: readonly string[];
  handle: BatchHandler;
  /** Where a group that is new to a topic starts: at the oldest message (the default), or after the newest. */
  fromBeginning?: boolean;
}

export interface Subscription {
  /** Takes no further batch and resolves when the running ones have ended. */
  stop(): Promise<void>;
}

/** What a consumer group has not taken yet of a topic, all partitions together. */
export interface GroupLag {
  groupId: string;
  topic: string;
  messages: number;
}

/**
 * The one way of events: a durable log with topics, keys and consumer groups. Delivery is at least once, in order
 * for one key. A batch holds at most `MAX_BATCH_MESSAGES`.
 */
export interface EventBus {
  /**
   * Resolves once every message is acknowledged: on all in-sync replicas, or committed.
   * @throws BusUnavailableError when refused, when the queue is full, or at the deadline (4 s unless given). A message
   * that was refused may still arrive.
   */
  publish(messages: readonly OutgoingMessage[], options?: PublishOptions): Promise<void>;
  /** Starts to consume; it goes on through outages until stopped. A failed batch is given again after a backoff. */
  subscribe(options: SubscribeOptions): Promise<Subscription>;
  /** Creates those topics that do not exist. */
  ensureTopics(topics: readonly string[]): Promise<void>;
  /** Those of `topics` that do not exist. */
  missingTopics(topics: readonly string[]): Promise<string[]>;
  /** @throws BusUnavailableError when the bus does not answer in time. */
  checkHealth(): Promise<void>;
  /** How far groups are behind; groups and topics that are not known yet are left out. @throws where the bus does not answer. */
  lag?(groups: ReadonlyMap<string, readonly string[]>): Promise<GroupLag[]>;
  /** Ends the subscriptions, then sends what is queued; resolves when what was in flight has ended. */
  stop(): Promise<void>;
}

export interface PublishOptions {
  /** From the call on, the time in the queue included. */
  deadlineMs?: number;
}

export const PUBLISH_DEADLINE_MS = 4_000;
export const MAX_BATCH_MESSAGES = 500;

/** The bus did not take the messages, or did not say in time that it has. */
export class BusUnavailableError extends Error {
  override name = 'BusUnavailableError';
}

/** Logs what the caller of a bus does not see. */
export type BusLog = (
  level: 'debug' | 'info' | 'warn' | 'error',
  message: string,
  fields?: Record<string, unknown>,
) => void;

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

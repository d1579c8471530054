import { isRefusedValue, isTransient, sqlState } from '../../platform/errors.ts';

/** A message to be published to a topic. Messages with the same key keep their order; header values are UTF-8 text. */
export interface OutgoingMessage {
  topic: string;
  key: string;
  /** The payload bytes; null makes the message a tombstone. */
  value: Buffer | null;
  headers: Record<string, string>;
}

/** A message read from a topic. `key` is an empty string where a foreign producer left it out. */
export interface IncomingMessage extends OutgoingMessage {
  partition: number;
  /** The position of the message in its partition: a decimal integer that rises within the partition. */
  offset: string;
  timestampMs: number;
}

/**
 * A function that processes messages of one partition, in their order. When it resolves they are committed and not
 * delivered again, except after a crash; when it rejects they are delivered again. Batches of different partitions may
 * run concurrently. `failures` says how often in a row the partition has failed before.
 */
export type BatchHandler = (batch: IncomingMessage[], failures?: number) => Promise<void>;

export interface SubscribeOptions {
  /** The consumer group: each group receives every message, and its members share them. */
  groupId: string;
  topics: readonly string[];
  handle: BatchHandler;
  /** Whether a group that is new to a topic starts at the oldest message (the default) or after the newest. */
  fromBeginning?: boolean;
}

export interface Subscription {
  /** Stops delivery and resolves when the handlers that are running have ended. */
  stop(): Promise<void>;
}

/** The number of messages of a topic that a consumer group has yet to process, over all partitions. */
export interface GroupLag {
  groupId: string;
  topic: string;
  messages: number;
}

/** The lag of a consumer group, with the age of the oldest message that it has yet to process, in seconds; 0 if none. */
export interface ConsumerLag extends GroupLag {
  oldestSeconds: number;
}

/**
 * The interface of the event bus: a durable log with topics, keys and consumer groups. Delivery is at least once, in
 * order for each key, in batches of at most `MAX_BATCH_MESSAGES`.
 */
export interface EventBus {
  /**
   * Publishes messages. Resolves once every one is acknowledged: stored by all in-sync replicas, or committed.
   * @throws BusUnavailableError when the messages are refused, when the queue is full, or at the deadline (4 s unless
   * given). The messages may still arrive after an error.
   */
  publish(messages: readonly OutgoingMessage[], options?: PublishOptions): Promise<void>;
  /**
   * Starts consuming and continues through outages until stopped. A batch that fails is delivered again after a
   * backoff.
   */
  subscribe(options: SubscribeOptions): Promise<Subscription>;
  /** Creates the topics that do not exist. */
  ensureTopics(topics: readonly string[]): Promise<void>;
  /** Returns the members of `topics` that do not exist, or have fewer than `partitions` (1 unless given). */
  missingTopics(topics: readonly string[], partitions?: number): Promise<string[]>;
  /**
   * Checks whether the bus responds.
   * @throws BusUnavailableError when it does not, within a timeout.
   */
  checkHealth(): Promise<void>;
  /**
   * Returns the lag of consumer groups, which are given with their topics; groups and topics unknown to the bus are
   * left out.
   * @throws an error when the bus does not respond.
   */
  lag?(groups: ReadonlyMap<string, readonly string[]>): Promise<ConsumerLag[]>;
  /**
   * Moves every consumer group back to the messages that were published at `sinceMs` or later, and returns how many
   * each will read again. A bus whose offsets are in the database has no need of it.
   * @throws BusUnavailableError while a group has members, before anything is moved.
   */
  rewind?(sinceMs: number): Promise<GroupLag[]>;
  /** Stops all subscriptions, then publishes what is queued. Resolves when nothing is in flight any more. */
  stop(): Promise<void>;
}

export interface PublishOptions {
  /** How long publishing may take, in milliseconds from the call, including the time in the queue. */
  deadlineMs?: number;
  /** The unexpected error that makes the messages dead letters, for the log. */
  cause?: unknown;
}

export const PUBLISH_DEADLINE_MS = 4_000;
export const MAX_BATCH_MESSAGES = 500;
/** How long a bus may take to answer a health check, in milliseconds. */
export const HEALTH_TIMEOUT_MS = 2_000;

/** Thrown when the bus refuses messages, does not acknowledge them in time, or does not respond. */
export class BusUnavailableError extends Error {
  override name = 'BusUnavailableError';
  readonly store = 'bus';
}

/** A log function for what callers of the bus cannot see, such as a batch that has failed and is delivered again. */
export type BusLog = (
  level: 'debug' | 'info' | 'warn' | 'error',
  message: string,
  fields?: Record<string, unknown>,
) => void;

/**
 * The range of offsets to read in one partition: from `first` to before `end`. `count` is an upper bound of the number
 * of messages in it.
 */
export interface PartitionSpan {
  partition: number;
  first: bigint;
  end: bigint;
  count: number;
}

/**
 * A selection of messages of a topic: either those after an offset of each partition (all of a partition that the map
 * does not name), or those published from `fromMs` to before `toMs`, in milliseconds since 1970. A period begins and
 * ends at the first offset of that time or later.
 */
export type Within = { after: ReadonlyMap<number, bigint> } | { fromMs: number; toMs: number };

export interface ReadOptions {
  topic: string;
  spans: readonly PartitionSpan[];
  /** Called with each batch. When it rejects, reading ends with that error. */
  handle: BatchHandler;
  signal: AbortSignal;
}

/** Read access to the stored messages of a topic without a consumer group; no group's offset changes. */
export interface LogReader {
  /** Returns the ranges of offsets that the selected messages have now, without partitions that have none. */
  spans(topic: string, within: Within): Promise<PartitionSpan[]>;
  /** Returns the age of the oldest message of the spans, in seconds; 0 if there is none. */
  oldestSeconds(topic: string, spans: readonly PartitionSpan[]): Promise<number>;
  /**
   * Passes each message of the spans to `handle` once, in batches, in order within each partition. Resolves when
   * all have been handled, or when `signal` aborts and the running batch has ended.
   * @throws BusUnavailableError when no more messages arrive, and any error of `handle`.
   */
  read(options: ReadOptions): Promise<void>;
}

/** Returns the name of the topic that holds the dead letters of `topic`. */
export function deadLetterTopicOf(topic: string): string {
  return `${topic}.dlq`;
}

/** Returns the name of the topic whose dead letters are in `topic`. */
export function originOf(topic: string): string {
  return topic.slice(0, topic.lastIndexOf('.'));
}

/** Checks whether `topic` holds the dead letters of another topic. */
export function isDeadLetterTopic(topic: string): boolean {
  return topic.endsWith('.dlq');
}

/** How long messages are kept in a topic that is not compacted, in days. */
export const RETENTION_DAYS = { messages: 7, deadLetters: 30 };

/** Where a dead letter is: its topic, its partition and its offset. */
export type LetterPlace = Pick<IncomingMessage, 'topic' | 'partition' | 'offset'>;

/** Returns the id by which operators name a dead letter. */
export function letterId({ topic, partition, offset }: LetterPlace): string {
  return `${topic}-${partition}-${offset}`;
}

/** Returns the place that an id names; undefined if it is no id of a dead letter. */
export function letterPlace(id: string): LetterPlace | undefined {
  const [, topic = '', partition, offset = ''] = /^(.+)-(\d{1,9})-(\d{1,18})$/.exec(id) ?? [];
  return isDeadLetterTopic(topic) ? { topic, partition: Number(partition), offset: String(BigInt(offset)) } : undefined;
}

const MAX_ERROR_LENGTH = 1_024;

/** Thrown for a message that no retry can apply; it becomes a dead letter. */
export class PoisonError extends Error {
  override name = 'PoisonError';
}

/** After so many failures in a row, which take 16 s, an unexpected error is traced to its messages. */
const FAILURES_BEFORE_TRACING = 8;
/** If another message of the topic was applied in this time, which is less than that, the process and its stores work. */
const WORKING_MS = 10_000;

/**
 * Returns a handler that moves to dead letters what no retry can apply. When a batch fails with poison, which is what
 * throws a PoisonError or what the database refuses, its messages are handled singly; those that fail again are published
 * to the dead-letter topic with their headers and `error`, `original-topic`, `original-partition` and `original-offset`.
 * The same is done with an unexpected error after eight failures, if other messages of the topic can be applied
 * (docs/decisions/042-dead-letters.md). Any other error is thrown, and the whole batch is delivered again, so `handle` must
 * tolerate repeats. It returns false if it had nothing to do.
 */
export function withDeadLetters(
  bus: Pick<EventBus, 'publish'>,
  handle: (batch: IncomingMessage[]) => Promise<unknown>,
): BatchHandler {
  const appliedTicks = new Map<string, number>();

  /** Handles messages; returns the error if it is poison or, when they are traced, unexpected. */
  async function attempt(batch: IncomingMessage[], isTraced: boolean): Promise<unknown> {
    try {
      if ((await handle(batch)) !== false) appliedTicks.set(batch[0]?.topic ?? '', performance.now());
    } catch (error) {
      if (isPoison(error) || (isTraced && !isTransient(error))) return error;
      throw error;
    }
    return undefined;
  }

  return async function handleBatch(batch, failures = 0) {
    const isTraced = failures >= FAILURES_BEFORE_TRACING;
    const sinceTick = performance.now() - WORKING_MS;
    if ((await attempt(batch, isTraced)) === undefined) return;
    const suspects: { message: IncomingMessage; error: unknown }[] = [];
    for (const message of batch) {
      // Messages with the same key keep their order.
      const before = suspects.find((suspect) => suspect.message.key === message.key);
      const error = before ? before.error : await attempt([message], isTraced);
      if (isPoison(error)) await bus.publish([deadLetter(message, error)]);
      else if (error !== undefined) suspects.push({ message, error });
    }
    const appliedTick = appliedTicks.get(batch[0]?.topic ?? '') ?? Number.NEGATIVE_INFINITY;
    if (suspects[0] && appliedTick < sinceTick) throw suspects[0].error;
    for (const { message } of suspects) {
      const cause = await attempt([message], true);
      if (cause !== undefined) await bus.publish([deadLetter(message, cause)], isPoison(cause) ? {} : { cause });
    }
  };
}

function deadLetter(
  { topic, key, value, headers, partition, offset }: IncomingMessage,
  cause: unknown,
): OutgoingMessage {
  return {
    topic: deadLetterTopicOf(topic),
    key,
    value,
    headers: {
      ...headers,
      error: isPoison(cause) ? describe(cause) : `unexpected ${nameOf(cause)} ${sqlState(cause) ?? ''}`.trim(),
      'original-topic': topic,
      'original-partition': String(partition),
      'original-offset': offset,
    },
  };
}

/** Returns the name of an error. Its message may quote a value. */
export function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : 'Error';
}

function isPoison(error: unknown): boolean {
  return error instanceof PoisonError || isRefusedValue(error);
}

/**
 * Describes an error in one line of at most 1,024 characters, without control characters such as U+0000, which
 * PostgreSQL cannot store.
 */
function describe(error: unknown): string {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return text
    .replaceAll(/\p{Cc}+/gu, ' ')
    .slice(0, MAX_ERROR_LENGTH)
    .toWellFormed();
}

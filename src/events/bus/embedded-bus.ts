import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate } from 'node:timers/promises';
import { KeyedMutex } from '../../lib/semaphore.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import { WorkLoop } from '../../lib/work-loop.ts';
import { type BusDatabase, EmbeddedStore, isWhole, type ReadPosition } from './embedded-store.ts';
import {
  type BatchHandler,
  type BusLog,
  BusUnavailableError,
  type ConsumerLag,
  type EventBus,
  type LogReader,
  type OutgoingMessage,
  type PartitionSpan,
  type PublishOptions,
  type ReadOptions,
  type SubscribeOptions,
  type Subscription,
  type Within,
} from './event-bus.ts';
import { PublishQueue } from './publish-queue.ts';

const TOPIC_POLL_MS = 1_000;

interface EmbeddedReaderOptions {
  store: EmbeddedStore;
  at: ReadPosition;
  handle: BatchHandler;
  log: BusLog;
  /**
   * The mutex that all readers of the bus share, keyed by group and topic: only one reader of a group reads a topic at
   * a time.
   */
  mutex: KeyedMutex;
}

/**
 * Reads one topic for one group: gives each batch to the handler, then stores its offset. A batch that fails is read
 * again after a backoff. Only one batch is in memory, however large the lag is.
 */
class EmbeddedReader {
  readonly #options: EmbeddedReaderOptions;
  readonly #stopping = new AbortController();
  readonly #loop = new WorkLoop({ iterate: (signal) => this.#iterate(signal), pollMs: TOPIC_POLL_MS });
  #failures = 0;
  /** Resolves when the reader has ended; never rejects. */
  readonly ended: Promise<void>;

  constructor(options: EmbeddedReaderOptions) {
    this.#options = options;
    const { signal } = this.#stopping;
    const { groupId, topic } = options.at;
    this.ended = options.mutex
      .run(JSON.stringify([groupId, topic]), () => this.#loop.run(signal), signal)
      // Rejects when the reader is stopped while it waits for the mutex: then it has nothing to end.
      .catch(() => undefined);
  }

  /** Starts the next read at once instead of at the next poll, if there are new messages of its topic. */
  notify(topics: ReadonlySet<string>): void {
    if (topics.has(this.#options.at.topic)) this.#loop.notify();
  }

  /** Resolves when the running handler has ended and its offset is stored. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.ended;
  }

  async #iterate(signal: AbortSignal): Promise<boolean> {
    const { at, log } = this.#options;
    try {
      const hasMore = await this.#step(signal);
      this.#failures = 0;
      // The embedded database responds within one tick of the event loop: many batches in a row would block everything
      // else.
      if (hasMore) await setImmediate();
      return hasMore;
    } catch (error) {
      this.#failures += 1;
      const fields = { ...at, failures: this.#failures, error };
      log('warn', 'event batch failed; retrying', fields);
      throw error;
    }
  }

  /** Reads a batch and passes it to the handler. Returns whether there may be more messages: after a full batch. */
  async #step(signal: AbortSignal): Promise<boolean> {
    const { store, at, handle } = this.#options;
    const batch = await store.read(at);
    const last = batch.at(-1);
    if (!last || signal.aborted) return false;
    await handle(batch);
    await store.commit(at, last.offset);
    return isWhole(batch);
  }
}

const HEALTH_TIMEOUT_MS = 2_000;
const REMOVAL_INTERVAL_MS = 10 * 60 * 1_000;

/**
 * The event bus of an installation without Kafka. Messages are stored in the database; readers of this process are
 * woken as soon as one is published and poll every second for messages of other processes. Only one process may
 * consume. Stop the bus before the database is closed.
 */
export class EmbeddedBus implements EventBus {
  readonly #store: EmbeddedStore;
  readonly #log: BusLog;
  readonly #queue: PublishQueue;
  readonly #outside = AsyncLocalStorage.snapshot();
  readonly #readers = new Set<EmbeddedReader>();
  readonly #mutex = new KeyedMutex();
  readonly #removal: NodeJS.Timeout;
  #removing: Promise<unknown> = Promise.resolve();
  #isStopped = false;

  constructor(database: BusDatabase, log: BusLog) {
    this.#store = new EmbeddedStore(database);
    this.#log = log;
    this.#queue = new PublishQueue({
      send: (messages) => this.#append(messages),
      maxBatchMessages: 1_000,
      maxTopicBytes: 2 * 1024 * 1024,
      singlesAtOnce: 1,
    });
    this.#removal = setInterval(() => this.#removeInBackground(), REMOVAL_INTERVAL_MS);
    this.#removal.unref();
  }

  publish(messages: readonly OutgoingMessage[], options: PublishOptions = {}): Promise<void> {
    return this.#queue.publish(messages, options.deadlineMs);
  }

  async subscribe({ groupId, topics, handle, fromBeginning = true }: SubscribeOptions): Promise<Subscription> {
    const positions = topics.map((topic) => ({ groupId, topic }));
    await this.#outside(async () => {
      for (const at of positions) await this.#store.register(at, fromBeginning);
    });
    if (this.#isStopped) throw new BusUnavailableError('the bus is stopped');
    const readers = this.#outside(() => positions.map((at) => this.#startReader(at, handle)));
    return {
      stop: async () => {
        await Promise.all(readers.map((reader) => reader.stop()));
      },
    };
  }

  /** Does nothing: the topics of the embedded bus need no creation. */
  async ensureTopics(_topics: readonly string[]): Promise<void> {}

  async missingTopics(_topics: readonly string[]): Promise<string[]> {
    return [];
  }

  async checkHealth(): Promise<void> {
    try {
      await withTimeout(
        this.#outside(() => this.#store.ping()),
        HEALTH_TIMEOUT_MS,
      );
    } catch (error) {
      throw new BusUnavailableError('the database is rejecting writes, or is slow', { cause: error });
    }
  }

  lag(groups: ReadonlyMap<string, readonly string[]>): Promise<ConsumerLag[]> {
    return this.#outside(() => this.#store.lag([...groups.keys()]));
  }

  /**
   * Removes the messages that every consumer group has read and whose retention has passed, in bounded batches, and
   * returns their number. The bus also calls it every ten minutes.
   */
  async removeRead(): Promise<number> {
    let total = 0;
    for (let isDone = false; !isDone && !this.#isStopped; ) {
      const { removed, ...result } = await this.#outside(() => this.#store.removeRead());
      total += removed;
      isDone = result.isDone;
    }
    return total;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearInterval(this.#removal);
    await Promise.all(this.#readers.values().map((reader) => reader.stop()));
    await Promise.all([this.#queue.close(), this.#removing]);
  }

  async #append(messages: readonly OutgoingMessage[]): Promise<void> {
    await this.#store.append(messages);
    const topics = new Set(messages.map(({ topic }) => topic));
    for (const reader of this.#readers) reader.notify(topics);
  }

  #startReader(at: { groupId: string; topic: string }, handle: SubscribeOptions['handle']): EmbeddedReader {
    const reader = new EmbeddedReader({ store: this.#store, at, handle, log: this.#log, mutex: this.#mutex });
    this.#readers.add(reader);
    void reader.ended.then(() => this.#readers.delete(reader));
    return reader;
  }

  #removeInBackground(): void {
    this.#removing = this.removeRead().catch((error: unknown) => {
      this.#log('warn', 'could not delete old events', { error: String(error) });
    });
  }
}

const PARTITION = 0;

/**
 * Reads the messages that the embedded bus stores. Each topic has one partition, number 0; its offsets rise, with gaps.
 */
export class EmbeddedLogReader implements LogReader {
  readonly #store: EmbeddedStore;

  constructor(database: BusDatabase) {
    this.#store = new EmbeddedStore(database);
  }

  async spans(topic: string, within: Within): Promise<PartitionSpan[]> {
    const span = await this.#store.spanOf(
      topic,
      'after' in within ? { after: within.after.get(PARTITION) ?? 0n } : within,
    );
    return span ? [{ partition: PARTITION, first: span.first, end: span.last + 1n, count: span.count }] : [];
  }

  async oldestSeconds(topic: string, [span]: readonly PartitionSpan[]): Promise<number> {
    return (span && (await this.#store.ageFrom(topic, span.first))) ?? 0;
  }

  async read({ topic, spans, handle, signal }: ReadOptions): Promise<void> {
    for (const { first, end } of spans) {
      for (let next = first; next < end && !signal.aborted; ) {
        const batch = await this.#store.readBetween(topic, next, end);
        const last = batch.at(-1);
        if (!last) break;
        await handle(batch);
        next = BigInt(last.offset) + 1n;
      }
    }
  }
}

import { AsyncLocalStorage } from 'node:async_hooks';
import { inTime } from '../lib/patience.ts';
import { EmbeddedReader } from './embedded-reader.ts';
import { type BusDatabase, EmbeddedStore } from './embedded-store.ts';
import {
  type BusLog,
  BusUnavailableError,
  type EventBus,
  type GroupLag,
  type OutgoingMessage,
  type PublishOptions,
  type SubscribeOptions,
  type Subscription,
} from './event-bus.ts';
import { PublishQueue } from './publish-queue.ts';

const HEALTH_TIMEOUT_MS = 2_000;
const REMOVAL_INTERVAL_MS = 10 * 60 * 1_000;

/**
 * The bus of an instance without Kafka: durable in the database, woken in process. One process consumes; what another
 * one publishes is seen within a second. Stop it before the database is closed.
 */
export class EmbeddedBus implements EventBus {
  readonly #store: EmbeddedStore;
  readonly #log: BusLog;
  readonly #queue: PublishQueue;
  readonly #outside = AsyncLocalStorage.snapshot();
  readonly #readers = new Set<EmbeddedReader>();
  /** For each group and topic, when its latest reader ends. */
  readonly #turns = new Map<string, Promise<void>>();
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

  /** Topics need no creation here. */
  async ensureTopics(_topics: readonly string[]): Promise<void> {}

  async missingTopics(_topics: readonly string[]): Promise<string[]> {
    return [];
  }

  async checkHealth(): Promise<void> {
    try {
      await inTime(
        this.#outside(() => this.#store.ping()),
        HEALTH_TIMEOUT_MS,
      );
    } catch (error) {
      throw new BusUnavailableError('the database refuses, or is slow', { cause: error });
    }
  }

  lag(groups: ReadonlyMap<string, readonly string[]>): Promise<GroupLag[]> {
    return this.#outside(() => this.#store.lag([...groups.keys()]));
  }

  /**
   * Removes what every group has read and what is past its age, a bounded number at a time; resolves with how many.
   * It runs by itself every ten minutes.
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
    for (const reader of this.#readers) reader.notify();
  }

  #startReader(at: { groupId: string; topic: string }, handle: SubscribeOptions['handle']): EmbeddedReader {
    const name = JSON.stringify([at.groupId, at.topic]);
    const turn = this.#turns.get(name) ?? Promise.resolve();
    const reader = new EmbeddedReader({ store: this.#store, at, handle, log: this.#log, turn });
    this.#readers.add(reader);
    const ended = Promise.all([turn, reader.ended]).then(() => {
      this.#readers.delete(reader);
      if (this.#turns.get(name) === ended) this.#turns.delete(name);
    });
    this.#turns.set(name, ended);
    return reader;
  }

  #removeInBackground(): void {
    this.#removing = this.removeRead().catch((error: unknown) => {
      this.#log('warn', 'old events could not be removed', { error });
    });
  }
}

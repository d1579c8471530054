import { StreamStoppedError } from '../../events/streams/event-log.ts';
import { runCooperatively } from '../../lib/yielding.ts';
import type { MigrationProgressRow } from './migration-files.service.ts';

/**
 * Iterates over the progress of a user migration for one subscriber: the first value at once, then always the newest
 * one, each once. Ends after the value that is done. Rejects when the process stops.
 */
export class ProgressStream implements AsyncIterableIterator<MigrationProgressRow, undefined> {
  /** Called once, when the stream ends. The last value may not have been read yet. */
  readonly #onEnd: (stream: ProgressStream) => void;
  readonly #first: MigrationProgressRow;
  readonly #left = new AbortController();
  #last: MigrationProgressRow;
  /** Whether the last value has been read. */
  #isTaken = false;
  /** Resolves at the next value, or at the end. */
  #changed = Promise.withResolvers<void>();
  isEnded: boolean;

  constructor(first: MigrationProgressRow, onEnd: (stream: ProgressStream) => void) {
    this.#onEnd = onEnd;
    this.#first = first;
    this.#last = first;
    this.isEnded = first.done;
  }

  /**
   * The signal that is aborted when no value is wanted any more: by `return`, or with the error that ends the stream.
   */
  get signal(): AbortSignal {
    return this.#left.signal;
  }

  /** Checks whether a value was read only for this subscriber. */
  isOwn(row: MigrationProgressRow): boolean {
    return row === this.#first;
  }

  /** Offers a new value, unless nothing has changed. It replaces a value that has not been read. */
  offer(row: MigrationProgressRow): void {
    if (this.isEnded || row.processed < this.#last.processed || stateOf(row) === stateOf(this.#last)) return;
    this.#last = row;
    this.#isTaken = false;
    this.#wake();
    if (row.done) this.end();
  }

  /** Ends the stream: without an error, an unread value can still be read; with an error, it is dropped. */
  end(error?: StreamStoppedError): void {
    if (this.isEnded) return;
    this.isEnded = true;
    if (error) this.#left.abort(error);
    this.#wake();
    this.#onEnd(this);
  }

  async next(): Promise<IteratorResult<MigrationProgressRow, undefined>> {
    while (this.#isTaken && !this.isEnded) await this.#changed.promise;
    const { aborted, reason } = this.signal;
    if (reason instanceof StreamStoppedError) throw reason;
    if (aborted || this.#isTaken) return { done: true, value: undefined };
    this.#isTaken = true;
    return { done: false, value: this.#last };
  }

  async return(): Promise<IteratorResult<MigrationProgressRow, undefined>> {
    this.#left.abort();
    this.end();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}

function stateOf({ migration, processed, total, done }: MigrationProgressRow): string {
  const { status, success, skipped, failed } = migration;
  return [status, success, skipped, failed, migration.total, processed, total, done].join();
}

const PROGRESS_POLL_MS = 500;

/** A user migration with its streams in this process. */
interface Feed {
  nodeId: string;
  id: string;
  streams: Set<ProgressStream>;
  timer: NodeJS.Timeout | undefined;
  isFailing: boolean;
}

/**
 * Streams the progress of user migrations to the subscribers of this process. A migration with subscribers is polled
 * twice a second, from any process.
 */
export class ProgressFeeds {
  readonly #deps;
  readonly #feeds = new Map<string, Feed>();
  #isStopped = false;

  constructor(deps: {
    /** Reads the progress of a tenant's user migration from the primary; undefined when there is none with this id. */
    progress(nodeId: string, id: string): Promise<MigrationProgressRow | undefined>;
    /** Called once for each outage, with its first error. */
    onError(error: unknown): void;
  }) {
    this.#deps = deps;
  }

  /** The number of user migrations that have a subscriber. */
  get size(): number {
    return this.#feeds.size;
  }

  /** Subscribes to the progress of a user migration; returns undefined when the tenant has none with this id. */
  async follow(nodeId: string, requestedId: string): Promise<ProgressStream | undefined> {
    const id = requestedId.toLowerCase();
    const first = await this.#deps.progress(nodeId, id);
    if (!first) return undefined;
    const feed = this.#feeds.get(id) ?? { nodeId, id, streams: new Set(), timer: undefined, isFailing: false };
    const stream = new ProgressStream(first, (endedStream) => this.#leave(feed, endedStream));
    if (stream.isEnded) return stream;
    feed.streams.add(stream);
    if (!this.#feeds.has(id)) {
      this.#feeds.set(id, feed);
      this.#schedule(feed);
    }
    if (this.#isStopped) stream.end(new StreamStoppedError());
    return stream;
  }

  /** Ends every stream with a StreamStoppedError. */
  stop(): void {
    this.#isStopped = true;
    for (const { streams } of [...this.#feeds.values()]) {
      for (const stream of streams) stream.end(new StreamStoppedError());
    }
  }

  #schedule(feed: Feed): void {
    feed.timer = setTimeout(() => this.#poll(feed), PROGRESS_POLL_MS);
  }

  async #poll(feed: Feed): Promise<void> {
    try {
      const row = await this.#deps.progress(feed.nodeId, feed.id);
      feed.isFailing = false;
      const worker = { key: feed.nodeId };
      for (const stream of [...feed.streams])
        await runCooperatively(() => (row ? stream.offer(row) : stream.end()), worker);
    } catch (error) {
      if (!feed.isFailing) this.#deps.onError(error);
      feed.isFailing = true;
    }
    if (feed.streams.size > 0) this.#schedule(feed);
  }

  #leave(feed: Feed, stream: ProgressStream): void {
    feed.streams.delete(stream);
    if (feed.streams.size > 0) return;
    clearTimeout(feed.timer);
    if (this.#feeds.get(feed.id) === feed) this.#feeds.delete(feed.id);
  }
}

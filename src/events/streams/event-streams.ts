import { at, type Clock, systemClock } from './clock.ts';
import type { EventLog, LoggedEvent } from './event-log.ts';
import { PAGE_EVENTS, RetryingLog } from './event-log.ts';
import { EventQueue, eventBytes } from './event-queue.ts';
import { CursorExpiredError, StreamStoppedError, TokenEndedError } from './stream-errors.ts';
import { EventTailers } from './tailer.ts';
import type { WakeUps } from './wake-ups.ts';

/** What a replay holds for a subscriber that takes nothing: a page of long events would be 128 MB. */
const MAX_GIVEN_BYTES = 1_048_576;

export interface SubscribeOptions {
  nodeId: string;
  /** The number of the last event that the subscriber has seen; 0: everything kept; undefined: only what comes now. */
  after?: bigint | undefined;
  matches: (event: LoggedEvent) => boolean;
  /** Where only the events of one transaction can match, which one: live ones of others are then not looked at. */
  transactionId?: string | undefined;
  /** Ends the stream in order. */
  signal?: AbortSignal | undefined;
  /** When the subscriber's token ends, in ms since 1970. */
  expiresAtMs?: number | undefined;
  /**
   * Watches whether the token ends before, and calls `onEnd` after it has returned; with an error where that cannot be known.
   * Returns the function that stops watching, which is called as the stream ends.
   */
  watchToken?: ((onEnd: (error?: unknown) => void) => () => void) | undefined;
}

interface StreamParts {
  log: RetryingLog;
  tailers: EventTailers;
  clock: Clock;
  onEnd: (stream: EventStream) => void;
}

/**
 * A subscriber's events: each one that matches exactly once, in the order of the log. It works from its construction
 * on, not from the first `next`. It ends in order by `return` or its signal, and otherwise rejects once with a
 * CursorExpiredError, SlowConsumerError, TokenEndedError, StreamStoppedError or what `matches` has thrown.
 */
export class EventStream implements AsyncIterableIterator<LoggedEvent, undefined> {
  /** The number after which events are delivered. Rejects where the stream ends before that is known. */
  readonly started: Promise<bigint>;
  readonly #options: SubscribeOptions;
  readonly #parts: StreamParts;
  readonly #queue = new EventQueue();
  readonly #ended = new AbortController();
  readonly #start = Promise.withResolvers<bigint>();
  readonly #cancelExpiry: () => void = () => undefined;
  readonly #unwatch: () => void = () => undefined;
  readonly #onAbort = () => this.end();
  #detach: () => void = () => undefined;

  constructor(options: SubscribeOptions, parts: StreamParts) {
    this.#options = options;
    this.#parts = parts;
    this.started = this.#start.promise;
    // Not everybody waits for it.
    this.started.catch(() => undefined);
    const { signal, expiresAtMs, watchToken } = options;
    if (expiresAtMs !== undefined) {
      this.#cancelExpiry = at(parts.clock, expiresAtMs, () => this.end(new TokenEndedError()));
    }
    if (watchToken) this.#unwatch = watchToken((error) => this.end(error ?? new TokenEndedError()));
    signal?.addEventListener('abort', this.#onAbort, { once: true });
    if (signal?.aborted) this.end();
    else if (expiresAtMs !== undefined && expiresAtMs <= parts.clock.nowMs()) this.end(new TokenEndedError());
    else this.#run().catch((error: unknown) => this.end(error));
  }

  get isEnded(): boolean {
    return this.#ended.signal.aborted;
  }

  next(): Promise<IteratorResult<LoggedEvent, undefined>> {
    return this.#queue.next();
  }

  async return(): Promise<IteratorResult<LoggedEvent, undefined>> {
    this.end();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.end();
  }

  /** Ends the stream and frees what it holds, at once; with an error for the reader or in order. */
  end(error?: unknown): void {
    if (this.#ended.signal.aborted) return;
    this.#ended.abort(error);
    this.#detach();
    this.#cancelExpiry();
    this.#unwatch();
    this.#options.signal?.removeEventListener('abort', this.#onAbort);
    this.#queue.end(error);
    this.#start.reject(this.#ended.signal.reason);
    this.#parts.onEnd(this);
  }

  async #run(): Promise<void> {
    const { nodeId, after } = this.#options;
    const { signal } = this.#ended;
    const position = after ?? (await this.#parts.log.headSeq(nodeId, signal));
    this.#start.resolve(position);
    const replayed = after === undefined ? position : await this.#replay(position);
    signal.throwIfAborted();
    await this.#join(replayed);
  }

  /**
   * Gives the log page by page, of long events a part of a page, each once what was before has been taken.
   * @returns where it ended.
   */
  async #replay(after: bigint): Promise<bigint> {
    const { signal } = this.#ended;
    for (let position = after; ; ) {
      const page = await this.#parts.log.backfill(this.#options.nodeId, position, signal);
      if (position > 0n && page[0]?.seq !== position + 1n) await this.#checkKept(position);
      position = this.#give(page, MAX_GIVEN_BYTES) ?? position;
      if (page.length < PAGE_EVENTS && position === (page.at(-1)?.seq ?? position)) return position;
      await this.#queue.whenDrained();
    }
  }

  /** Listens to the tailer, reads what lies between, then lets the live events go. */
  async #join(replayed: bigint): Promise<void> {
    const { nodeId, transactionId } = this.#options;
    const { tailers, log } = this.#parts;
    const listener = {
      hear: (events: readonly LoggedEvent[]) => this.#hear(events),
      whenTaken: () => this.#queue.whenTaken(),
    };
    const { from, detach } = tailers.attach(nodeId, replayed, listener, transactionId);
    this.#detach = detach;
    let position = replayed;
    while (position < from) position = this.#give(await log.backfill(nodeId, position, this.#ended.signal)) ?? from;
    this.#queue.goLive(position);
  }

  // A gap in the numbers is where events have left the log: by their age or, harmless, one by one. The head comes
  // first: what is appended after it cannot make the cursor look older than it is.
  async #checkKept(position: bigint): Promise<void> {
    const { nodeId } = this.#options;
    const head = await this.#parts.log.headSeq(nodeId, this.#ended.signal);
    const oldest = (await this.#parts.log.oldestKept(nodeId, this.#ended.signal)) ?? head + 1n;
    if (position < oldest - 1n || position > head) throw new CursorExpiredError(position);
  }

  /** Gives a page, or as much of it as reaches so many bytes. @returns the number of the last event that it has seen to. */
  #give(page: readonly LoggedEvent[], mostBytes = Number.POSITIVE_INFINITY): bigint | undefined {
    let bytes = 0;
    for (const event of page) {
      if (!this.#options.matches(event)) continue;
      this.#queue.replay(event);
      bytes += eventBytes(event);
      if (bytes >= mostBytes) return event.seq;
    }
    return page.at(-1)?.seq;
  }

  #hear(events: readonly LoggedEvent[]): void {
    try {
      for (const event of events) if (this.#options.matches(event)) this.#queue.push(event);
    } catch (error) {
      this.end(error);
    }
  }
}

const POLL_MS = 1_000;

export interface EventStreamsOptions {
  log: EventLog;
  wakeUps: WakeUps;
  /** Called once for each outage of the log, with its first error. */
  onError: (error: unknown) => void;
  clock?: Clock | undefined;
  /** How often a tenant's log is read without a wake-up, in milliseconds: 1,000 unless given. */
  pollMs?: number | undefined;
}

/** The fan-out of a process: whatever reaches a subscriber comes from the log, read once for each tenant. */
export class EventStreams {
  readonly #clock: Clock;
  readonly #log: RetryingLog;
  readonly #tailers: EventTailers;
  readonly #streams = new Set<EventStream>();
  #isStopped = false;

  constructor({ log, wakeUps, onError, clock = systemClock, pollMs = POLL_MS }: EventStreamsOptions) {
    this.#clock = clock;
    this.#log = new RetryingLog({ log, clock, onError });
    this.#tailers = new EventTailers({ log: this.#log, wakeUps, clock, pollMs });
  }

  /** Without `after`, whatever is committed once the stream's `started` has resolved is delivered. */
  subscribe(options: SubscribeOptions): EventStream {
    const stream = new EventStream(options, {
      log: this.#log,
      tailers: this.#tailers,
      clock: this.#clock,
      onEnd: (ended) => this.#streams.delete(ended),
    });
    if (!stream.isEnded) this.#streams.add(stream);
    if (this.#isStopped) stream.end(new StreamStoppedError());
    return stream;
  }

  /** What is held now: it returns to nothing when the last subscriber has gone. */
  get load(): { streams: number; tailers: number } {
    return { streams: this.#streams.size, tailers: this.#tailers.size };
  }

  /** Ends every stream with a StreamStoppedError. */
  stop(): void {
    this.#isStopped = true;
    for (const stream of this.#streams) stream.end(new StreamStoppedError());
    this.#tailers.stop();
  }
}

import { heldMemory, inRequest } from '../../platform/held-memory.ts';
import {
  CursorExpiredError,
  type EventLog,
  eventBytes,
  FIRST_EVENTS,
  hasMore,
  type LoggedEvent,
  PAGE_EVENTS,
  RetryingLog,
  SlowConsumerError,
  StreamStoppedError,
} from './event-log.ts';
import { EventTailers } from './tailer.ts';
import type { WakeUps } from './wake-ups.ts';

const MAX_UNSENT_EVENTS = 1_000;
const MAX_UNSENT_BYTES = 1_048_576;

/**
 * The events that one subscriber has yet to take. Replayed events come first and are not limited, since they are read
 * only as fast as the subscriber takes them. Live events wait until the replay has reached them, and are limited.
 */
export class EventQueue<Payload> {
  #replayed: LoggedEvent<Payload>[] = [];
  #live: LoggedEvent<Payload>[] = [];
  #liveBytes = 0;
  #isLive = false;
  #liveAfter = 0n;
  #isEnded = false;
  #error: unknown;
  #awaited: PromiseWithResolvers<void> | undefined;
  #emptied: PromiseWithResolvers<void> | undefined;
  /**
   * Is called with each live event for which a call of `next` waits. Returns whether it has sent the event; the call then
   * waits on.
   */
  sendEventNow: ((event: LoggedEvent<Payload>) => boolean) | undefined;

  /**
   * Returns the next event as soon as there is one. Rejects once if the queue has ended with an error. One call may wait
   * at a time.
   */
  async next(): Promise<IteratorResult<LoggedEvent<Payload>, undefined>> {
    let event = this.#shiftEvent();
    while (event === undefined && !this.#isEnded) {
      this.#awaited = Promise.withResolvers();
      await this.#awaited.promise;
      event = this.#shiftEvent();
    }
    if (event !== undefined) return { done: false, value: event };
    const error = this.#error;
    this.#error = undefined;
    if (error !== undefined) throw error;
    return { done: true, value: undefined };
  }

  /** Whether a call of `next` waits: all events were taken, and what was made of them was sent. */
  get isAwaited(): boolean {
    return this.#awaited !== undefined;
  }

  /** Checks whether the event with this sequence number was replayed. */
  isReplayed(seq: bigint): boolean {
    return !this.#isLive || seq <= this.#liveAfter;
  }

  replay(event: LoggedEvent<Payload>): void {
    if (!this.#isEnded) this.#replayed.push(event);
    this.#wake();
  }

  /** Resolves when every replayed event has been taken or the queue has ended. */
  whenDrained(): Promise<void> | undefined {
    return this.#whenEmpty(this.#replayed);
  }

  /**
   * Resolves once all live events have been taken or the queue has ended. Returns undefined if none can be taken now.
   */
  whenTaken(): Promise<void> | undefined {
    const taken = () => this.#whenEmpty(this.#live);
    return this.#isLive ? (this.whenDrained()?.then(taken) ?? taken()) : undefined;
  }

  /**
   * Adds a live event.
   * @throws SlowConsumerError when more than 1,000 events or 1 MiB of them have not been taken.
   */
  push(event: LoggedEvent<Payload>): void {
    if (this.#isEnded || event.seq <= this.#liveAfter) return;
    const isAwaited = this.#isLive && this.isAwaited;
    if (isAwaited && this.sendEventNow?.(event)) return;
    this.#live.push(event);
    this.#liveBytes += eventBytes(event);
    if (isAwaited) this.#wake();
    else if (this.#live.length > MAX_UNSENT_EVENTS || this.#liveBytes > MAX_UNSENT_BYTES) throw new SlowConsumerError();
  }

  /**
   * Releases the live events after sequence number `position` and drops those up to it, which were replayed or are not
   * wanted.
   */
  goLive(position: bigint): void {
    const held = this.#live;
    this.#live = [];
    this.#liveBytes = 0;
    this.#isLive = true;
    this.#liveAfter = position;
    for (const event of held) this.push(event);
  }

  /** Ends the queue and drops the events that were not taken. An error is passed to one call of `next`. */
  end(error?: unknown): void {
    this.#isEnded = true;
    this.#replayed = [];
    this.#live = [];
    this.#error = error;
    this.#wake();
    this.#emptied?.resolve();
  }

  #wake(): void {
    this.#awaited?.resolve();
    this.#awaited = undefined;
  }

  #shiftEvent(): LoggedEvent<Payload> | undefined {
    const events = this.#replayed.length > 0 || !this.#isLive ? this.#replayed : this.#live;
    const event = events.shift();
    if (event !== undefined && events === this.#live) this.#liveBytes -= eventBytes(event);
    if (events.length > 0) return event;
    this.#emptied?.resolve();
    this.#emptied = undefined;
    return event;
  }

  #whenEmpty(events: readonly LoggedEvent<Payload>[]): Promise<void> | undefined {
    if (this.#isEnded || events.length === 0) return undefined;
    this.#emptied ??= Promise.withResolvers();
    return this.#emptied.promise;
  }
}

export interface StreamOptions<Payload = LoggedEvent['transaction']> {
  nodeId: string;
  /**
   * The sequence number of the last event that the subscriber has seen. 0 begins with the oldest event in the log;
   * undefined delivers new events only.
   */
  after?: bigint | undefined;
  matches: (event: LoggedEvent<Payload>) => boolean;
  /**
   * The only transaction whose events can match, if there is only one: live events of other transactions are then not
   * passed to `matches`.
   */
  transactionId?: string | undefined;
}

/**
 * The event stream of a subscriber: delivers each matching event exactly once, in the order of the log. It starts when
 * it is constructed, not with the first `next`. It ends without an error by `return`; otherwise it rejects once with a
 * CursorExpiredError, SlowConsumerError, StreamStoppedError or what `matches` has thrown.
 */
export class EventStream<Payload = LoggedEvent['transaction']>
  implements AsyncIterableIterator<LoggedEvent<Payload>, undefined>
{
  /**
   * A promise of the sequence number after which events are delivered. It rejects if the stream ends before that is
   * known.
   */
  readonly started: Promise<bigint>;
  readonly #options: StreamOptions<Payload>;
  readonly #deps;
  readonly #queue = new EventQueue<Payload>();
  /** The memory that the replayed page takes; undefined if no request waits for the stream. */
  readonly #held = heldMemory()?.openSeparately();
  readonly #ended = new AbortController();
  readonly #start = Promise.withResolvers<bigint>();
  #detach: () => void = () => undefined;

  constructor(
    options: StreamOptions<Payload>,
    dependencies: {
      log: RetryingLog<Payload>;
      tailers: EventTailers<Payload>;
      onEnd: (stream: EventStream<Payload>) => void;
    },
  ) {
    this.#options = options;
    this.#deps = dependencies;
    this.started = this.#start.promise;
    // Not every caller awaits this promise: its rejection must not count as unhandled.
    this.started.catch(() => undefined);
    this.#run().catch((error: unknown) => this.end(error));
  }

  /** Sends live events while a call of `next` waits. */
  set sendEventNow(send: EventQueue<Payload>['sendEventNow']) {
    this.#queue.sendEventNow = send;
  }

  /** The signal that is aborted when the stream ends, with its error. */
  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  /** Checks whether an event of this stream was replayed: it was read only for this subscriber. */
  isOwn({ seq }: Pick<LoggedEvent, 'seq'>): boolean {
    return this.#queue.isReplayed(seq);
  }

  next(): Promise<IteratorResult<LoggedEvent<Payload>, undefined>> {
    return this.#queue.next();
  }

  async return(): Promise<IteratorResult<LoggedEvent<Payload>, undefined>> {
    this.end();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /**
   * Ends the stream and frees its resources at once. With an error the subscriber gets that error, otherwise a normal
   * end.
   */
  end(error?: unknown): void {
    if (this.#ended.signal.aborted) return;
    this.#ended.abort(error);
    this.#detach();
    this.#queue.end(error);
    this.#held?.end();
    this.#start.reject(this.#ended.signal.reason);
    this.#deps.onEnd(this);
  }

  async #run(): Promise<void> {
    const { nodeId, after } = this.#options;
    const { signal } = this.#ended;
    const position = after ?? (await this.#deps.log.headSeq(nodeId, signal));
    this.#start.resolve(position);
    const replayed = after === undefined ? position : await this.#replay(position);
    signal.throwIfAborted();
    await this.#join(replayed);
  }

  /**
   * Replays the log page by page, each after the subscriber has taken the one before. Returns the sequence number up to
   * which it has replayed.
   */
  async #replay(after: bigint): Promise<bigint> {
    for (let position = after, limit = FIRST_EVENTS; ; ) {
      this.#held?.lowerTo(0);
      const page = await this.#read(position, limit);
      if (position > 0n && page[0]?.seq !== position + 1n) await this.#checkCursor(position);
      position = this.#queueMatching(page) ?? position;
      if (!hasMore(page, limit)) return position;
      // PostgreSQL computed the size of all events of a page that was cut, so the next page asks for fewer.
      limit = page.at(-1)?.isCut ? 2 * page.length : PAGE_EVENTS;
      await this.#queue.whenDrained();
    }
  }

  #read(position: bigint, limit?: number): Promise<LoggedEvent<Payload>[]> {
    const read = () => this.#deps.log.backfill(this.#options.nodeId, position, this.#ended.signal, limit);
    // The page waits for its reader, which may be slow.
    return this.#held ? inRequest(this.#held, read).finally(() => this.#held?.pass()) : read();
  }

  /**
   * Attaches to the tailer, reads the events between the end of the replay and the tailer's position, then releases the
   * live events.
   */
  async #join(replayed: bigint): Promise<void> {
    const { nodeId, transactionId } = this.#options;
    const { tailers } = this.#deps;
    const subscriber = {
      receive: (events: readonly LoggedEvent<Payload>[]) => this.#receive(events),
      whenTaken: () => this.#queue.whenTaken(),
    };
    const { from, detach } = tailers.attach(nodeId, replayed, subscriber, transactionId);
    this.#detach = detach;
    let position = replayed;
    while (position < from) position = this.#queueMatching(await this.#read(position)) ?? from;
    this.#queue.goLive(position);
    await this.#queue.whenDrained();
    this.#held?.end();
  }

  // A gap in the sequence numbers means that events were deleted: because of their age or, which is harmless, one by
  // one. The head is read first, so that an event appended after it cannot make the cursor look older than it is.
  async #checkCursor(position: bigint): Promise<void> {
    const { nodeId } = this.#options;
    const head = await this.#deps.log.headSeq(nodeId, this.#ended.signal);
    const oldest = (await this.#deps.log.oldestSeq(nodeId, this.#ended.signal)) ?? head + 1n;
    if (position < oldest - 1n || position > head) throw new CursorExpiredError(position);
  }

  /**
   * Queues the matching events of a page. Returns the sequence number of its last event; undefined for an empty page.
   */
  #queueMatching(page: readonly LoggedEvent<Payload>[]): bigint | undefined {
    for (const event of page) if (this.#options.matches(event)) this.#queue.replay(event);
    return page.at(-1)?.seq;
  }

  #receive(events: readonly LoggedEvent<Payload>[]): boolean {
    try {
      for (const event of events) if (this.#options.matches(event)) this.#queue.push(event);
    } catch (error) {
      this.end(error);
    }
    return this.#queue.isAwaited;
  }
}

const EVENT_POLL_MS = 1_000;

export interface EventStreamsOptions<Payload = LoggedEvent['transaction']> {
  log: EventLog<Payload>;
  wakeUps: WakeUps;
  /** Called once for each outage of the event log, with its first error. */
  onError: (error: unknown) => void;
  /** How often a tenant's log is read without a wake-up, in milliseconds; 1,000 by default. */
  pollMs?: number | undefined;
}

/**
 * Delivers events to all subscribers of this process. Every event comes from the event log, which is read once for each
 * tenant, for any number of its subscribers.
 */
export class EventStreams<Payload = LoggedEvent['transaction']> {
  readonly #log: RetryingLog<Payload>;
  readonly #tailers: EventTailers<Payload>;
  readonly #streams = new Set<EventStream<Payload>>();
  #isStopped = false;

  constructor({ log, wakeUps, onError, pollMs = EVENT_POLL_MS }: EventStreamsOptions<Payload>) {
    this.#log = new RetryingLog({ log, onError });
    this.#tailers = new EventTailers({ log: this.#log, wakeUps, pollMs });
  }

  /**
   * Starts a stream of events for one subscriber. Without `after`, it delivers every event that is committed once the
   * stream's `started` has resolved.
   */
  subscribe(options: StreamOptions<Payload>): EventStream<Payload> {
    const stream = new EventStream(options, {
      log: this.#log,
      tailers: this.#tailers,
      onEnd: (endedStream) => this.#streams.delete(endedStream),
    });
    this.#streams.add(stream);
    if (this.#isStopped) stream.end(new StreamStoppedError());
    return stream;
  }

  /** How long ago, in ms, a tailer last began to read: little more than its poll, unless one hangs. */
  get tailersAgeMs(): number {
    return this.#tailers.ageMs;
  }

  /** The numbers of open streams and running tailers; both are 0 when there are no subscribers. */
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

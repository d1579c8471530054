import { setImmediate } from 'node:timers/promises';
import { runCooperatively } from '../../lib/yielding.ts';
import { outsideRequest } from '../../platform/held-memory.ts';
import type { Clock } from './clock.ts';
import { eventBytes, hasMore, type LoggedEvent, type RetryingLog } from './event-log.ts';
import type { WakeUps } from './wake-ups.ts';

interface Subscriber<Payload> {
  /** Called with the next events of the log, in order, each once; must not throw. */
  receive(events: readonly LoggedEvent<Payload>[]): void;
  /**
   * Returns a promise that resolves once the subscriber has taken all events passed to it; undefined if it already has.
   */
  whenTaken(): Promise<void> | undefined;
}

/** A burst of events is passed on in parts of at most this many events: a quarter of what may wait for a subscriber. */
const PART_EVENTS = 250;
/** The size in bytes at which a part of a burst is complete: a quarter of what may wait for a subscriber. */
const PART_BYTES = 256 * 1024;
/**
 * How long a burst waits, in milliseconds, until at least one subscriber has taken a part. If none has, this process
 * itself is slow.
 */
const FIRST_SUBSCRIBER_TIMEOUT_MS = 5_000;
/**
 * How long a burst waits for one slow subscriber: this many milliseconds in total, counted from 0 again once that
 * subscriber has taken everything.
 */
const SLOW_SUBSCRIBER_TIMEOUT_MS = 1_000;

interface Dependencies<Payload> {
  log: RetryingLog<Payload>;
  wakeUps: WakeUps;
  clock: Clock;
  pollMs: number;
}

/** Runs one tailer for each tenant that has subscribers, from the first of them to the last. */
export class EventTailers<Payload> {
  readonly #deps: Dependencies<Payload>;
  readonly #tailers = new Map<string, NodeTailer<Payload>>();
  readonly #unlisten: () => void;

  constructor(dependencies: Dependencies<Payload>) {
    this.#deps = dependencies;
    this.#unlisten = dependencies.wakeUps.listen((nodeId, seq) => this.#tailers.get(nodeId)?.wake(seq));
  }

  /**
   * Passes a tenant's new events to the subscriber. A tailer that is not running yet starts after sequence number
   * `position`, the last that the subscriber has seen; a running one is elsewhere: the subscriber gets every event after
   * `from` of the result. With `transactionId`, it gets the events of that transaction only. `detach` ends that at once;
   * repeated calls have no effect.
   */
  attach(nodeId: string, position: bigint, subscriber: Subscriber<Payload>, transactionId?: string) {
    const tailer = this.#tailers.getOrInsertComputed(nodeId, () => new NodeTailer(nodeId, position, this.#deps));
    tailer.add(subscriber, transactionId);
    const detach = () => {
      if (tailer.remove(subscriber, transactionId) && this.#tailers.get(nodeId) === tailer)
        this.#tailers.delete(nodeId);
    };
    return { from: tailer.position, detach };
  }

  /** How long ago, in ms, the read of an event log began that began before all others; 0 if none is read. */
  get ageMs(): number {
    return Math.max(0, ...this.#tailers.values().map(({ readTick }) => performance.now() - readTick));
  }

  /** The number of tenants whose event logs are being read. */
  get size(): number {
    return this.#tailers.size;
  }

  stop(): void {
    this.#unlisten();
    for (const tailer of this.#tailers.values()) tailer.stop();
    this.#tailers.clear();
  }
}

class NodeTailer<Payload> {
  readonly #nodeId: string;
  readonly #deps: Dependencies<Payload>;
  readonly #subscribers = new Set<Subscriber<Payload>>();
  /** How long others have waited for each slow subscriber, in milliseconds, since it last had taken everything. */
  readonly #waitedMs = new WeakMap<Subscriber<Payload>, number>();
  readonly #ofTransactions = new Map<string, Set<Subscriber<Payload>>>();
  readonly #ended = new AbortController();
  /** When the last read of the log began, by the monotonic clock. */
  readTick = performance.now();
  /** The sequence number up to which events were passed on. */
  position: bigint;
  #isReading = false;
  #isAwaited = false;
  #cancelPoll: () => void = () => undefined;

  constructor(nodeId: string, position: bigint, dependencies: Dependencies<Payload>) {
    this.#nodeId = nodeId;
    this.position = position;
    this.#deps = dependencies;
    this.wake();
  }

  add(subscriber: Subscriber<Payload>, transactionId: string | undefined): void {
    if (transactionId === undefined) {
      this.#subscribers.add(subscriber);
      return;
    }
    this.#ofTransactions.getOrInsertComputed(transactionId, () => new Set()).add(subscriber);
  }

  /** Removes a subscriber. Returns whether it was the last one, in which case the tailer has stopped. */
  remove(subscriber: Subscriber<Payload>, transactionId: string | undefined): boolean {
    const subscribers = transactionId === undefined ? this.#subscribers : this.#ofTransactions.get(transactionId);
    subscribers?.delete(subscriber);
    if (transactionId !== undefined && subscribers?.size === 0) this.#ofTransactions.delete(transactionId);
    if (this.#subscribers.size + this.#ofTransactions.size > 0) return false;
    this.stop();
    return true;
  }

  /** Reads the log now or, if a read is running, again after it. A `seq` that was read already is ignored. */
  wake(seq?: bigint): void {
    if (this.#ended.signal.aborted || (seq !== undefined && seq <= this.position)) return;
    this.#isAwaited = true;
    if (this.#isReading) return;
    this.#isReading = true;
    this.#cancelPoll();
    // A subscriber may have woken it, whose request does not wait for what all subscribers get.
    outsideRequest(() => this.#readOn()).catch((error: unknown) => {
      if (!this.#ended.signal.aborted) throw error;
    });
  }

  stop(): void {
    this.#ended.abort();
    this.#cancelPoll();
    this.#subscribers.clear();
    this.#ofTransactions.clear();
  }

  async #readOn(): Promise<void> {
    const { log, clock, pollMs } = this.#deps;
    const { signal } = this.#ended;
    while (this.#isAwaited) {
      this.#isAwaited = false;
      this.readTick = performance.now();
      const events = await log.readEvents(this.#nodeId, this.position, signal);
      const last = events.at(-1);
      if (last === undefined) continue;
      if (events.length === 1) await this.#deliver(events, last.seq);
      else await this.#handBurst(events);
      if (!hasMore(events)) continue;
      this.#isAwaited = true;
      // Reading a long log must not block the rest of the process.
      await setImmediate();
    }
    this.#isReading = false;
    this.#cancelPoll = clock.after(pollMs, () => this.wake());
  }

  /** Passes a burst on in parts, so that a subscriber that reads as fast as it can does not count as slow. */
  async #handBurst(events: readonly LoggedEvent<Payload>[]): Promise<void> {
    for (const part of partsOf(events)) {
      await this.#deliver(part, part.at(-1)?.seq ?? this.position);
      if (part.length === events.length && part.length < PART_EVENTS) return;
      await this.#pace();
    }
  }

  /**
   * Waits until subscribers have taken what was passed to them; one that has used up its waiting time is not waited
   * for.
   */
  async #pace(): Promise<void> {
    const behind = this.#behind();
    if (behind.length === 0) return;
    if (behind.length === this.#subscribers.size) {
      await this.#atMost(FIRST_SUBSCRIBER_TIMEOUT_MS, Promise.race(behind.map(({ taken }) => taken)));
    }
    const waitedFor = this.#behind().filter(({ waitedMs }) => waitedMs < SLOW_SUBSCRIBER_TIMEOUT_MS);
    if (waitedFor.length === 0) return;
    const { clock } = this.#deps;
    const fromMs = clock.nowMs();
    const leftMs = SLOW_SUBSCRIBER_TIMEOUT_MS - Math.max(...waitedFor.map(({ waitedMs }) => waitedMs));
    await this.#atMost(leftMs, Promise.all(waitedFor.map(({ taken }) => taken)));
    const tookMs = clock.nowMs() - fromMs;
    for (const { subscriber, waitedMs } of waitedFor) this.#waitedMs.set(subscriber, waitedMs + tookMs);
  }

  #behind() {
    return [...this.#subscribers].flatMap((subscriber) => {
      const taken = subscriber.whenTaken();
      if (taken) return [{ subscriber, taken, waitedMs: this.#waitedMs.get(subscriber) ?? 0 }];
      this.#waitedMs.delete(subscriber);
      return [];
    });
  }

  async #atMost(ms: number, waited: Promise<unknown>): Promise<void> {
    const { promise: over, resolve } = Promise.withResolvers<void>();
    const cancel = this.#deps.clock.after(ms, resolve);
    await Promise.race([waited, over]);
    cancel();
  }

  /** Passes events on. A subscriber that joins in the meantime reads them from the log. */
  async #deliver(events: readonly LoggedEvent<Payload>[], upTo: bigint): Promise<void> {
    this.position = upTo;
    for (const subscriber of this.#subscribers) {
      const receiving = runCooperatively(() => subscriber.receive(events), { key: this.#nodeId });
      if (receiving) await receiving;
    }
    if (this.#ofTransactions.size === 0) return;
    for (const event of events) {
      for (const subscriber of this.#ofTransactions.get(event.transaction_id) ?? []) subscriber.receive([event]);
    }
  }
}

function* partsOf<Payload>(events: readonly LoggedEvent<Payload>[]): Generator<readonly LoggedEvent<Payload>[]> {
  let part: LoggedEvent<Payload>[] = [];
  let bytes = 0;
  for (const event of events) {
    part.push(event);
    bytes += eventBytes(event);
    if (part.length < PART_EVENTS && bytes < PART_BYTES) continue;
    yield part;
    part = [];
    bytes = 0;
  }
  if (part.length > 0) yield part;
}

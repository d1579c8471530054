import { setImmediate } from 'node:timers/promises';
import { withTimeout } from '../../lib/with-timeout.ts';
import { pause } from '../../lib/work-loop.ts';
import { runCooperatively } from '../../lib/yielding.ts';
import { outsideRequest } from '../../platform/held-memory.ts';
import { eventBytes, hasMore, type LoggedEvent, type RetryingLog } from './event-log.ts';
import type { WakeUps } from './wake-ups.ts';

interface Subscriber<Payload> {
  /**
   * Called with the next events of the log, in order, each once; must not throw. Returns whether all that it wants of
   * them is sent.
   */
  receive(events: readonly LoggedEvent<Payload>[]): boolean;
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
  pollMs: number;
}

/**
 * Runs one tailer for each tenant that has subscribers, from the first of them to the last. One poll for all tenants
 * finds the logs that have grown without a wake-up, so that a tenant without events costs next to nothing.
 */
export class EventTailers<Payload> {
  readonly #deps: Dependencies<Payload>;
  readonly #tailers = new Map<string, NodeTailer<Payload>>();
  readonly #unlisten: () => void;
  /** Ends the poll, which runs while there are tailers. */
  #polling: AbortController | undefined;
  /** When the last poll ended, by the monotonic clock. */
  #pollTick = 0;

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
    if (this.#polling?.signal.aborted !== false) this.#polling = this.#poll();
    const detach = () => {
      if (tailer.remove(subscriber, transactionId) && this.#tailers.get(nodeId) === tailer)
        this.#tailers.delete(nodeId);
      if (this.#tailers.size === 0) this.#polling?.abort();
    };
    return { from: tailer.position, detach };
  }

  /** How long ago, in ms, the last poll ended or, if that is longer, a read began that is running; 0 without tailers. */
  get ageMs(): number {
    const now = performance.now();
    return Math.max(0, ...this.#tailers.values().map(({ readTick = now }) => now - Math.min(readTick, this.#pollTick)));
  }

  /** The number of tenants whose event logs are being read. */
  get size(): number {
    return this.#tailers.size;
  }

  stop(): void {
    this.#unlisten();
    this.#polling?.abort();
    for (const tailer of this.#tailers.values()) tailer.stop();
  }

  #poll(): AbortController {
    const polling = new AbortController();
    // The request of the first subscriber does not wait for it.
    outsideRequest(() => this.#wakeGrown(polling.signal)).catch(unlessAborted(polling.signal));
    return polling;
  }

  /** Wakes the tailers whose logs have grown, at an interval until the signal is aborted. */
  async #wakeGrown(signal: AbortSignal): Promise<never> {
    for (;;) {
      this.#pollTick = performance.now();
      await pause(this.#deps.pollMs, signal);
      for (const [nodeId, seq] of await this.#deps.log.headSeqs([...this.#tailers.keys()], signal)) {
        this.#tailers.get(nodeId)?.wake(seq);
      }
    }
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
  /** When the read of the log that is running began, by the monotonic clock; undefined if none is. */
  readTick: number | undefined;
  /** The sequence number up to which events were passed on. */
  position: bigint;
  #isAwaited = false;

  constructor(nodeId: string, position: bigint, dependencies: Dependencies<Payload>) {
    this.#nodeId = nodeId;
    this.position = position;
    this.#deps = dependencies;
    this.wake();
  }

  add(subscriber: Subscriber<Payload>, transactionId: string | undefined): void {
    const ofTransaction = () => this.#ofTransactions.getOrInsertComputed(transactionId ?? '', () => new Set());
    (transactionId === undefined ? this.#subscribers : ofTransaction()).add(subscriber);
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
    if (this.readTick !== undefined) return;
    this.readTick = performance.now();
    // A subscriber may have woken it, whose request does not wait for what all subscribers get.
    outsideRequest(() => this.#readOn()).catch(unlessAborted(this.#ended.signal));
  }

  stop(): void {
    this.#ended.abort();
    this.#subscribers.clear();
    this.#ofTransactions.clear();
  }

  async #readOn(): Promise<void> {
    const { signal } = this.#ended;
    while (this.#isAwaited) {
      this.#isAwaited = false;
      this.readTick = performance.now();
      const events = await this.#deps.log.readEvents(this.#nodeId, this.position, signal);
      await this.#handBurst(events);
      if (!hasMore(events)) continue;
      this.#isAwaited = true;
      // Reading a long log must not block the rest of the process.
      await setImmediate();
    }
    this.readTick = undefined;
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
    if (behind.length > 0 && behind.length === this.#subscribers.size) {
      const first = Promise.race(behind.map(({ taken }) => taken));
      await withTimeout(first, FIRST_SUBSCRIBER_TIMEOUT_MS).catch(() => undefined);
    }
    const waitedFor = this.#behind().filter(({ waitedMs }) => waitedMs < SLOW_SUBSCRIBER_TIMEOUT_MS);
    if (waitedFor.length === 0) return;
    const fromMs = Date.now();
    const leftMs = SLOW_SUBSCRIBER_TIMEOUT_MS - Math.max(...waitedFor.map(({ waitedMs }) => waitedMs));
    await withTimeout(Promise.all(waitedFor.map(({ taken }) => taken)), leftMs).catch(() => undefined);
    const tookMs = Date.now() - fromMs;
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

  /** Passes events on. A subscriber that joins in the meantime reads them from the log. */
  async #deliver(events: readonly LoggedEvent<Payload>[], upTo: bigint): Promise<void> {
    this.position = upTo;
    for (const subscriber of this.#subscribers) {
      const isSent = runCooperatively(() => subscriber.receive(events), { key: this.#nodeId });
      // What it waits for is then there for those that share it, and is sent to them at once.
      if (isSent !== true && !(await isSent)) await new Promise<void>((resolve) => process.nextTick(resolve));
    }
    for (const event of events) {
      for (const subscriber of this.#ofTransactions.get(event.transaction_id) ?? []) subscriber.receive([event]);
    }
  }
}

/** Returns what handles the rejection of work that a signal ends: any other reason is thrown on. */
function unlessAborted(signal: AbortSignal): (error: unknown) => void {
  return (error) => {
    if (!signal.aborted) throw error;
  };
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

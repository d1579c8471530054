import { setImmediate } from 'node:timers/promises';
import type { Clock } from './clock.ts';
import type { LoggedEvent } from './event-log.ts';
import { PAGE_EVENTS, type RetryingLog } from './event-log.ts';
import { eventBytes } from './event-queue.ts';
import type { WakeUps } from './wake-ups.ts';

interface Subscriber {
  /** Takes the next events of the log, in order, each once; must not throw. */
  hear(events: readonly LoggedEvent[]): void;
  /** Resolves once it has sent all that it was handed; undefined where it has. */
  whenTaken(): Promise<void> | undefined;
}

/** A burst is handed on in parts of at most so much: a quarter of what may be unsent to a subscriber. */
const PART_EVENTS = 250;
const PART_BYTES = 256 * 1024;
/** How long a burst waits for the first subscriber to take a part: where none has, this process is what is slow. */
const FIRST_READER_MS = 5_000;
/** How long the subscribers of a tenant wait, altogether, for one that is behind, until it has taken everything once. */
const SLOW_READER_TIMEOUT_MS = 1_000;

interface Attachment {
  /** The subscriber gets every event after this one, and none up to it. */
  from: bigint;
  /** Ends it at once. May be called again. */
  detach(): void;
}

interface TailerParts {
  log: RetryingLog;
  wakeUps: WakeUps;
  clock: Clock;
  pollMs: number;
}

/** Runs one tailer for each tenant that has subscribers: it begins with the first of them and ends with the last. */
export class EventTailers {
  readonly #parts: TailerParts;
  readonly #tailers = new Map<string, NodeTailer>();
  readonly #unlisten: () => void;

  constructor(parts: TailerParts) {
    this.#parts = parts;
    this.#unlisten = parts.wakeUps.listen((nodeId, seq) => this.#tailers.get(nodeId)?.wake(BigInt(seq)));
  }

  /**
   * Hands a tenant's events to the subscriber from now on. `position` is where a tailer begins that is not running yet:
   * the number of the last event that the subscriber has seen. One that runs is somewhere else; `from` says where. With
   * `transactionId` it gets the events of that transaction alone, and costs those of others nothing.
   */
  attach(nodeId: string, position: bigint, subscriber: Subscriber, transactionId?: string): Attachment {
    const tailer = this.#tailers.get(nodeId) ?? new NodeTailer(nodeId, position, this.#parts);
    this.#tailers.set(nodeId, tailer);
    tailer.add(subscriber, transactionId);
    const detach = () => {
      if (tailer.remove(subscriber, transactionId) && this.#tailers.get(nodeId) === tailer)
        this.#tailers.delete(nodeId);
    };
    return { from: tailer.position, detach };
  }

  /** The number of tenants whose logs are being read. */
  get size(): number {
    return this.#tailers.size;
  }

  stop(): void {
    this.#unlisten();
    for (const tailer of this.#tailers.values()) tailer.stop();
    this.#tailers.clear();
  }
}

class NodeTailer {
  readonly #nodeId: string;
  readonly #parts: TailerParts;
  readonly #subscribers = new Set<Subscriber>();
  /** How long others have waited for a subscriber since it had last taken everything. */
  readonly #waitedMs = new WeakMap<Subscriber, number>();
  readonly #ofTransactions = new Map<string, Set<Subscriber>>();
  readonly #ended = new AbortController();
  #position: bigint;
  #isReading = false;
  #isAwaited = false;
  #cancelPoll: () => void = () => undefined;

  constructor(nodeId: string, position: bigint, parts: TailerParts) {
    this.#nodeId = nodeId;
    this.#position = position;
    this.#parts = parts;
    this.wake();
  }

  get position(): bigint {
    return this.#position;
  }

  add(subscriber: Subscriber, transactionId: string | undefined): void {
    if (transactionId === undefined) {
      this.#subscribers.add(subscriber);
      return;
    }
    const subscribers = this.#ofTransactions.get(transactionId) ?? new Set();
    this.#ofTransactions.set(transactionId, subscribers.add(subscriber));
  }

  /** @returns whether it was the last one, with which the tailer has ended. */
  remove(subscriber: Subscriber, transactionId: string | undefined): boolean {
    const subscribers = transactionId === undefined ? this.#subscribers : this.#ofTransactions.get(transactionId);
    subscribers?.delete(subscriber);
    if (transactionId !== undefined && subscribers?.size === 0) this.#ofTransactions.delete(transactionId);
    if (this.#subscribers.size + this.#ofTransactions.size > 0) return false;
    this.stop();
    return true;
  }

  /** Reads now or, while a read is under way, once more after it. */
  wake(seq?: bigint): void {
    if (this.#ended.signal.aborted || (seq !== undefined && seq <= this.#position)) return;
    this.#isAwaited = true;
    if (this.#isReading) return;
    this.#isReading = true;
    this.#cancelPoll();
    this.#readOn().catch((error: unknown) => {
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
    const { log, clock, pollMs } = this.#parts;
    const { signal } = this.#ended;
    while (this.#isAwaited) {
      this.#isAwaited = false;
      const events = await log.readEvents(this.#nodeId, this.#position, signal);
      const last = events.at(-1);
      if (last === undefined) continue;
      if (events.length === 1) this.#hand(events, last.seq);
      else await this.#handBurst(events);
      if (events.length < PAGE_EVENTS) continue;
      this.#isAwaited = true;
      // A long log must not hold up the rest of the process.
      await setImmediate();
    }
    this.#isReading = false;
    this.#cancelPoll = clock.after(pollMs, () => this.wake());
  }

  /** Hands on a burst in parts: a subscriber that reads as fast as it can is not slow because much has come at once. */
  async #handBurst(events: readonly LoggedEvent[]): Promise<void> {
    for (const part of partsOf(events)) {
      this.#hand(part, part.at(-1)?.seq ?? this.#position);
      if (part.length === events.length && part.length < PART_EVENTS) return;
      await this.#pace();
    }
  }

  /** Lets subscribers take what they were handed; one that has kept the others waiting is waited for no more. */
  async #pace(): Promise<void> {
    const behind = this.#behind();
    if (behind.length === 0) return;
    if (behind.length === this.#subscribers.size) {
      await this.#atMost(FIRST_READER_MS, Promise.race(behind.map(({ taken }) => taken)));
    }
    const waitedFor = this.#behind().filter(({ waitedMs }) => waitedMs < SLOW_READER_TIMEOUT_MS);
    if (waitedFor.length === 0) return;
    const { clock } = this.#parts;
    const fromMs = clock.nowMs();
    const leftMs = SLOW_READER_TIMEOUT_MS - Math.max(...waitedFor.map(({ waitedMs }) => waitedMs));
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
    const cancel = this.#parts.clock.after(ms, resolve);
    await Promise.race([waited, over]);
    cancel();
  }

  #hand(events: readonly LoggedEvent[], upTo: bigint): void {
    this.#position = upTo;
    for (const subscriber of this.#subscribers) subscriber.hear(events);
    if (this.#ofTransactions.size === 0) return;
    for (const event of events) {
      for (const subscriber of this.#ofTransactions.get(event.transactionId) ?? []) subscriber.hear([event]);
    }
  }
}

function* partsOf(events: readonly LoggedEvent[]): Generator<readonly LoggedEvent[]> {
  let part: LoggedEvent[] = [];
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

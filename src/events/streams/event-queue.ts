import type { LoggedEvent } from './event-log.ts';
import { SlowConsumerError } from './stream-errors.ts';

const ENVELOPE_BYTES = 256;
const known = new WeakMap<LoggedEvent<unknown>, number>();

/** Returns the approximate size of an event when it is sent, in bytes. It is computed once for all subscribers. */
export function eventBytes(event: LoggedEvent<unknown>): number {
  return known.getOrInsertComputed(event, ({ transaction }) => {
    const json = JSON.stringify(transaction, (_, value: unknown) => (typeof value === 'bigint' ? `${value}` : value));
    return ENVELOPE_BYTES + Buffer.byteLength(json);
  });
}

const MAX_UNSENT_EVENTS = 1_000;
const MAX_UNSENT_BYTES = 1_048_576;

type Reader<Payload> = PromiseWithResolvers<IteratorResult<LoggedEvent<Payload>, undefined>>;

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
  #readers: Reader<Payload>[] = [];
  #drained = Promise.withResolvers<void>();
  #taken: PromiseWithResolvers<void> | undefined;

  /** Returns the next event as soon as there is one. Rejects once if the queue has ended with an error. */
  next(): Promise<IteratorResult<LoggedEvent<Payload>, undefined>> {
    const event = this.#shiftEvent();
    if (event !== undefined) return Promise.resolve({ done: false, value: event });
    if (this.#error !== undefined) {
      const error = this.#error;
      this.#error = undefined;
      return Promise.reject(error);
    }
    if (this.#isEnded) return Promise.resolve({ done: true, value: undefined });
    const reader: Reader<Payload> = Promise.withResolvers();
    this.#readers.push(reader);
    return reader.promise;
  }

  /** Checks whether the event with this sequence number was replayed. */
  isReplayed(seq: bigint): boolean {
    return !this.#isLive || seq <= this.#liveAfter;
  }

  replay(event: LoggedEvent<Payload>): void {
    if (!this.#isEnded && !this.#handOver(event)) this.#replayed.push(event);
  }

  /** Resolves when every replayed event has been taken or the queue has ended. */
  whenDrained(): Promise<void> {
    if (this.#replayed.length === 0 || this.#isEnded) return Promise.resolve();
    return this.#drained.promise;
  }

  /**
   * Resolves once all live events have been taken or the queue has ended. Returns undefined if none can be taken now.
   */
  whenTaken(): Promise<void> | undefined {
    if (this.#isEnded || !this.#isLive || this.#live.length === 0) return undefined;
    this.#taken ??= Promise.withResolvers();
    return this.#taken.promise;
  }

  /**
   * Adds a live event.
   * @throws SlowConsumerError when more than 1,000 events or 1 MiB of them have not been taken.
   */
  push(event: LoggedEvent<Payload>): void {
    if (this.#isEnded || event.seq <= this.#liveAfter) return;
    if (this.#isLive && this.#handOver(event)) return;
    this.#live.push(event);
    this.#liveBytes += eventBytes(event);
    if (this.#live.length > MAX_UNSENT_EVENTS || this.#liveBytes > MAX_UNSENT_BYTES) throw new SlowConsumerError();
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
    const [first, ...otherReaders] = this.#readers;
    this.#readers = [];
    if (first === undefined) this.#error = error;
    else if (error === undefined) first.resolve({ done: true, value: undefined });
    else first.reject(error);
    for (const reader of otherReaders) reader.resolve({ done: true, value: undefined });
    this.#drained.resolve();
    this.#taken?.resolve();
  }

  // A call of `next` waits only while there is no event to take.
  #handOver(event: LoggedEvent<Payload>): boolean {
    const reader = this.#readers.shift();
    reader?.resolve({ done: false, value: event });
    return reader !== undefined;
  }

  #shiftEvent(): LoggedEvent<Payload> | undefined {
    const replayed = this.#replayed.shift();
    if (replayed !== undefined) {
      if (this.#replayed.length === 0) {
        this.#drained.resolve();
        this.#drained = Promise.withResolvers();
      }
      return replayed;
    }
    const event = this.#isLive ? this.#live.shift() : undefined;
    if (event === undefined) return undefined;
    this.#liveBytes -= eventBytes(event);
    if (this.#taken && this.#live.length === 0) {
      this.#taken.resolve();
      this.#taken = undefined;
    }
    return event;
  }
}

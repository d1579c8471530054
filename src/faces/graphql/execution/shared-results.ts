import type { ExecutionResult } from 'graphql';
import type { StartDelivery } from './operation-observer.ts';
import { ownBytes } from './uploads.ts';

/** A value, or a promise of it. */
export type Awaitable<Value> = Value | Promise<Value>;

/** What all who are sent the result of an event need of it, made once. */
class SharedResult {
  /** The cursor of the event, where it has one. */
  readonly eventId: string | undefined;
  /** The result in JSON; undefined where it has errors, which each subscriber is shown with a correlation id of its own. */
  readonly text: string | undefined;
  /** Begins the span of a delivery, where the event belongs to a trace. */
  readonly startDelivery: StartDelivery | undefined;
  /** The text as an event of an event stream, once it was sent as one. */
  frame: Buffer | undefined;
  #bytes: Buffer | undefined;

  constructor(event: object, result: ExecutionResult, startDelivery: StartDelivery | undefined) {
    this.eventId = 'seq' in event ? String(event.seq) : undefined;
    this.text = result.errors ? undefined : JSON.stringify(result);
    this.startDelivery = startDelivery;
  }

  /** The text in UTF-8. */
  get bytes(): Buffer | undefined {
    if (this.text !== undefined) this.#bytes ??= ownBytes(this.text);
    return this.#bytes;
  }
}

interface Kept {
  event: object;
  key: string;
  weight: number;
}

const SHARED = Symbol('shared');

/** About as many characters of answers as are kept for those who are behind. */
const KEPT_CHARACTERS = 4 * 1024 * 1024;
/** What keeping one takes beside its text, in characters. */
const OWN_WEIGHT = 512;

/** Returns what those who are sent a result share; undefined where it is not the result of an event. */
export function sharedOf(result: object): SharedResult | undefined {
  return SHARED in result ? (result[SHARED] as SharedResult) : undefined;
}

/**
 * The answers to events. Subscribers whose key is the same share one execution of each event that reaches them as the
 * same object, and its text: the tailer of a node hands an event to all of its live subscribers, while whoever replays
 * the log reads events of its own. What a subscriber gets, and when it ends, is its own stream's matter.
 */
export class SharedResults {
  readonly #answers = new WeakMap<object, Map<string, Awaitable<ExecutionResult>>>();
  readonly #kept = new Set<Kept>();
  readonly #deliveryOf: (event: object) => StartDelivery | undefined;
  #weight = 0;

  constructor(deliveryOf: (event: object) => StartDelivery | undefined = () => undefined) {
    this.#deliveryOf = deliveryOf;
  }

  /** The answer to an event: the one that there is, or what `execute` gives. */
  answer(event: unknown, key: string, execute: () => Awaitable<ExecutionResult>): Awaitable<ExecutionResult> {
    if (typeof event !== 'object' || event === null) return execute();
    const answers = this.#answers.get(event) ?? new Map<string, Awaitable<ExecutionResult>>();
    this.#answers.set(event, answers);
    const existing = answers.get(key);
    if (existing) return existing;
    const executed = execute();
    const answer =
      executed instanceof Promise
        ? executed.then(
            (result) => this.#keep(event, key, result),
            (error: unknown) => {
              answers.delete(key);
              throw error;
            },
          )
        : this.#keep(event, key, executed);
    answers.set(key, answer);
    return answer;
  }

  /** How many answers are kept. */
  get size(): number {
    return this.#kept.size;
  }

  #keep(event: object, key: string, result: ExecutionResult): ExecutionResult {
    const shared = new SharedResult(event, result, this.#deliveryOf(event));
    const kept = { event, key, weight: OWN_WEIGHT + (shared.text?.length ?? 0) };
    this.#kept.add(kept);
    this.#weight += kept.weight;
    for (const oldest of this.#kept) {
      if (this.#weight <= KEPT_CHARACTERS) break;
      this.#kept.delete(oldest);
      this.#weight -= oldest.weight;
      this.#answers.get(oldest.event)?.delete(oldest.key);
    }
    return Object.assign(result, { [SHARED]: shared });
  }
}

/**
 * The answers to the events of one subscription, each as its event comes. It stands in the place of graphql's own, which
 * takes several turns and a copy of all arguments for each event, also where the answer is there already.
 */
export class ResultStream implements AsyncIterableIterator<ExecutionResult, undefined> {
  readonly #events: AsyncIterator<unknown>;
  readonly #answer: (event: unknown) => Awaitable<ExecutionResult>;
  #isEnded = false;

  constructor(events: AsyncIterable<unknown>, answer: (event: unknown) => Awaitable<ExecutionResult>) {
    this.#events = events[Symbol.asyncIterator]();
    this.#answer = answer;
  }

  /** Rejects with what the events end with, and where an event cannot be answered at all, which ends them. */
  async next(): Promise<IteratorResult<ExecutionResult, undefined>> {
    if (this.#isEnded) return { done: true, value: undefined };
    const { done, value: event } = await this.#events.next();
    if (done || this.#isEnded) return { done: true, value: undefined };
    try {
      const answer = this.#answer(event);
      const value = answer instanceof Promise ? await answer : answer;
      return this.#isEnded ? { done: true, value: undefined } : { done: false, value };
    } catch (error) {
      await this.return();
      throw error;
    }
  }

  async return(): Promise<IteratorResult<ExecutionResult, undefined>> {
    this.#isEnded = true;
    await this.#events.return?.();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}

import type { ExecutionResult } from 'graphql';
import { ownBytes } from '../lib/own-bytes.ts';
import type { StartDelivery } from './operation-observer.ts';

/** What is there already, or will be. */
export type Awaitable<Value> = Value | Promise<Value>;

/** What all who are told an answer need of it, made once. */
interface Told {
  /** The cursor of the event, where it has one. */
  eventId: string | undefined;
  /** The answer in JSON; undefined where it has errors, which are told to each in words of its own. */
  text: string | undefined;
  /** The answer as an event of an event stream. */
  frame: Buffer | undefined;
  /** The text in UTF-8. */
  bytes: Buffer | undefined;
  /** Where the event belongs to a trace. */
  startDelivery: StartDelivery | undefined;
}

interface Kept {
  event: object;
  key: string;
  weight: number;
}

const TOLD = Symbol('told');

/** About as many characters of answers as are kept for those who are behind. */
const KEPT_CHARACTERS = 4 * 1024 * 1024;
/** What keeping one takes beside its text, in characters. */
const OWN_WEIGHT = 512;

/** The cursor of the event that a result was made from, where it has one. */
export function eventIdOf(result: object): string | undefined {
  return toldOf(result)?.eventId;
}

/** What traces the deliveries of a result, where it answers an event that belongs to a trace. */
export function deliveryOf(result: object): StartDelivery | undefined {
  return toldOf(result)?.startDelivery;
}

/** A result's JSON text where it answers an event and has no errors: the same for all who are told it. */
export function sharedTextOf(result: object): string | undefined {
  return toldOf(result)?.text;
}

/** The same text in UTF-8. */
export function sharedBytesOf(result: object): Buffer | undefined {
  const told = toldOf(result);
  if (told?.text === undefined) return undefined;
  told.bytes ??= ownBytes(told.text);
  return told.bytes;
}

/** The frame of a result for event streams; `make` is called once for all of them where the text is shared. */
export function frameOf(result: object, make: () => Buffer): Buffer {
  const told = toldOf(result);
  if (told?.text === undefined) return make();
  told.frame ??= make();
  return told.frame;
}

/**
 * The answers to events. Subscribers whose key is the same share one execution of each event that reaches them as the
 * same object, and its text: the tailer of a node hands an event to all of its live subscribers, while whoever replays
 * the log reads events of its own. What a subscriber gets, and when it ends, is its own stream's matter.
 */
export class EventAnswers {
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
    const text = result.errors ? undefined : JSON.stringify(result);
    const told: Told = {
      eventId: 'seq' in event ? String(event.seq) : undefined,
      text,
      frame: undefined,
      bytes: undefined,
      startDelivery: this.#deliveryOf(event),
    };
    const kept = { event, key, weight: OWN_WEIGHT + (text?.length ?? 0) };
    this.#kept.add(kept);
    this.#weight += kept.weight;
    for (const oldest of this.#kept) {
      if (this.#weight <= KEPT_CHARACTERS) break;
      this.#kept.delete(oldest);
      this.#weight -= oldest.weight;
      this.#answers.get(oldest.event)?.delete(oldest.key);
    }
    return Object.assign(result, { [TOLD]: told });
  }
}

function toldOf(result: object): Told | undefined {
  return TOLD in result ? (result[TOLD] as Told) : undefined;
}

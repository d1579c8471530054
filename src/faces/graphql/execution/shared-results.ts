import { createHash } from 'node:crypto';
import {
  type DocumentNode,
  type ExecutionResult,
  Kind,
  type OperationDefinitionNode,
  print,
  type ValidatedSubscriptionArgs,
  visit,
} from 'graphql';
import type { SharedPrincipal } from '../kit/graphql-context.ts';
import type { StartDelivery } from './operation-observer.ts';

/** A value, or a promise of it. */
export type Awaitable<Value> = Value | Promise<Value>;

/**
 * A text in UTF-8, in memory of its own. What `Buffer.from` gives shares 64 KiB with whatever else was made just then, and
 * keeps all of that for as long as it is kept itself: for what is held, not for what is written and forgotten.
 */
export function ownBytes(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  return bytes;
}

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

/** Where a subscription begins; the resolvers of root fields give an event as it is, whatever this says. */
const BEGINNING = 'after';

type Subscription = Pick<ValidatedSubscriptionArgs, 'document' | 'operation' | 'rawVariableValues'>;

/**
 * What the answer to an event depends on beside the event: the document, the operation, its variables but for the one
 * that says where it begins, and every member of the principal that there is where it is answered.
 */
export function resultKeyOf(
  { document, operation, rawVariableValues }: Subscription,
  principal: SharedPrincipal,
): string {
  const source = document.loc?.source.body ?? print(document);
  const beginnings = beginningsOf(document, operation);
  const declared = (operation.variableDefinitions ?? []).map(({ variable }) => variable.name.value);
  const variables = declared
    .filter((name) => !beginnings.has(name) && Object.hasOwn(rawVariableValues ?? {}, name))
    .sort()
    .map((name) => [name, rawVariableValues?.[name]]);
  const text = JSON.stringify([source, operation.name?.value, variables, principal], canonical);
  return createHash('sha256').update(text).digest('base64');
}

/** The variables that say where the operation begins, and nothing else. */
function beginningsOf(document: DocumentNode, { selectionSet }: OperationDefinitionNode): ReadonlySet<string> {
  const names = selectionSet.selections.flatMap((field) =>
    field.kind === Kind.FIELD
      ? (field.arguments ?? []).flatMap(({ name, value }) =>
          name.value === BEGINNING && value.kind === Kind.VARIABLE ? [value.name.value] : [],
        )
      : [],
  );
  if (names.length === 0) return new Set();
  const mentions = new Map<string, number>();
  visit(document, {
    Variable: ({ name }) => void mentions.set(name.value, (mentions.get(name.value) ?? 0) + 1),
  });
  // Its definition, and this one use.
  return new Set(names.filter((name) => mentions.get(name) === 2));
}

/** Members in one order, those of a set as well, and integers that JSON does not know. */
function canonical(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return `${value}n`;
  if (value instanceof Set) return [...value].sort();
  if (typeof value !== 'object' || value === null || Array.isArray(value) || 'toJSON' in value) return value;
  // A raw number is no plain object, and has no members to put in order.
  if (Object.getPrototypeOf(value) === null) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

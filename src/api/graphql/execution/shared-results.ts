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
import { OVERLOAD_MAX_MS, SlowConsumerError } from '../../../events/streams/event-log.ts';
import { BoundedMap } from '../../../lib/bounded-map.ts';
import { Semaphore } from '../../../lib/semaphore.ts';
import { backoffMs, pause } from '../../../lib/work-loop.ts';
import { isShort, limitedJson, runCooperatively, SLICE_LENGTH } from '../../../lib/yielding.ts';
import { isOverload } from '../../../platform/errors.ts';
import { heldMemory, type SharedHold } from '../../../platform/held-memory.ts';
import type { SharedPrincipal } from '../kit/resolvers.ts';
import { MAX_RESULT_BYTES, originOf, pageTooLarge } from './error-masking.ts';
import type { StartDelivery } from './operation-observer.ts';

/**
 * Returns a text as UTF-8 in a separate buffer, for bytes that stay in memory for long: `Buffer.from` would take them
 * from a pool of 64 KiB, none of which is freed before all of its buffers are.
 */
export function ownBytes(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  return bytes;
}

/** Yields one result. */
export async function* once(result: ExecutionResult): AsyncGenerator<ExecutionResult> {
  yield result;
}

/** The bytes of a server-sent event, and what records keep of them. */
export interface SharedFrame {
  bytes: Buffer;
  recorded: SharedHold<Buffer>;
}

/** The result of an event, encoded once for all subscribers that receive it. */
interface SharedResult {
  /** The cursor of the event; undefined if it has none. */
  readonly eventId: string | undefined;
  /** The result as JSON; undefined if it has errors, because each subscriber sees those with its own correlation id. */
  readonly text: string | undefined;
  /** Begins the span of a delivery; undefined if the event belongs to no trace. */
  readonly startDelivery: StartDelivery | undefined;
  /** The result as a server-sent event, and what records keep of it; undefined until it is first sent as one. */
  frame: SharedFrame | undefined;
  /** What the records of WebSocket operations keep of the text; undefined until one does. */
  recordedText: SharedHold<string> | undefined;
}

/** Checks whether a part of a result was refused because of overload. */
function isOverloaded({ errors }: ExecutionResult): boolean {
  return errors?.some((error) => isOverload(originOf(error))) === true;
}

const SHARED = Symbol('shared');

/**
 * Holds the text of an event's result until the next one, if it is long. It waits for its reader then, which may be slow:
 * others read meanwhile.
 * @throws SlowConsumerError when other results of the tenant leave no room for it for long.
 */
export async function holdText(length: number): Promise<void> {
  try {
    await (length > SLICE_LENGTH ? heldMemory()?.raiseTo(length) : undefined);
    heldMemory()?.pass();
  } catch {
    throw new SlowConsumerError();
  }
}

/** The approximate number of characters of results that are kept for subscribers that are behind. */
export const KEPT_CHARACTERS = 4 * 1024 * 1024;
/** The memory that a kept result takes in addition to its text, counted in characters. */
const OWN_WEIGHT = 512;

/** Returns the shared form of a result; undefined if it is not the result of an event. */
export function sharedOf(result: object): SharedResult | undefined {
  return SHARED in result ? (result[SHARED] as SharedResult) : undefined;
}

/**
 * Shares the results of events. The tailer of a tenant gives the same event object to all its live subscribers, and
 * those with the same key share one execution and its text. A subscriber that replays the log reads event objects of
 * its own, which are not shared.
 */
export class SharedResults {
  readonly #answers = new WeakMap<object, Map<string, ExecutionResult | Promise<ExecutionResult>>>();
  /** How many characters each kept result takes, the oldest first. */
  readonly #retained = new BoundedMap<{ event: object; key: string }, number>(KEPT_CHARACTERS, {
    weightOf: (characters) => characters,
    onDropped: ({ event, key }) => this.#answers.get(event)?.delete(key),
  });
  readonly #deliveryOf: (event: object) => StartDelivery | undefined;

  constructor(deliveryOf: (event: object) => StartDelivery | undefined = () => undefined) {
    this.#deliveryOf = deliveryOf;
  }

  /**
   * Returns the result for an event: the existing one, or the one that `execute` gives, which is kept unless it is
   * overloaded.
   */
  shared(
    event: object,
    key: string,
    execute: () => Promise<ExecutionResult>,
  ): ExecutionResult | Promise<ExecutionResult> {
    const answers = this.#answers.getOrInsertComputed(event, () => new Map());
    return answers.getOrInsertComputed(key, () =>
      this.own(event, execute()).then(
        (result) => this.#keep(event, key, result),
        (error: unknown) => {
          answers.delete(key);
          throw error;
        },
      ),
    );
  }

  /** Returns the result for an event if it is there, has no errors and is short: hundreds may be sent in one turn. */
  ready(event: object, key: string): ExecutionResult | undefined {
    const answer = this.#answers.get(event)?.get(key) ?? {};
    const isShortText = (sharedOf(answer)?.text?.length ?? Number.POSITIVE_INFINITY) <= SLICE_LENGTH / 8;
    return isShortText ? (answer as ExecutionResult) : undefined;
  }

  /**
   * Returns the result for an event that no other subscriber receives, which is not kept; instead of one that is too
   * long, the error that says so.
   */
  async own(event: object, executed: Promise<ExecutionResult>): Promise<ExecutionResult> {
    const result = await executed;
    if (isOverloaded(result)) return result;
    if (result.errors || isShort(result)) return this.#encoded(event, result);
    const text = await limitedJson(result, MAX_RESULT_BYTES, heldMemory()?.unstoppable, holdText);
    return text === undefined ? this.#encoded(event, pageTooLarge()) : this.#encoded(event, result, text);
  }

  /** The number of results that are kept. */
  get size(): number {
    return this.#retained.size;
  }

  #encoded(event: object, result: ExecutionResult, encodedText?: string): ExecutionResult {
    const shared: SharedResult = {
      eventId: 'seq' in event ? String(event.seq) : undefined,
      text: result.errors ? undefined : (encodedText ?? JSON.stringify(result)),
      startDelivery: this.#deliveryOf(event),
      frame: undefined,
      recordedText: undefined,
    };
    return Object.assign(result, { [SHARED]: shared });
  }

  #keep(event: object, key: string, result: ExecutionResult): ExecutionResult {
    const shared = sharedOf(result);
    if (shared) {
      this.#answers.get(event)?.set(key, result);
      this.#retained.set({ event, key }, OWN_WEIGHT + (shared.text?.length ?? 0));
    } else this.#answers.get(event)?.delete(key);
    return result;
  }
}

/**
 * The argument that says where a subscription begins. It does not change results: the resolvers of root fields return
 * the event as it is.
 */
const BEGINNING = 'after';

/**
 * Returns the key by which subscribers share results: a hash of everything but the event that a result depends on,
 * namely the document, the operation, its variables except the one that says where it begins, and the principal.
 */
export function resultKeyOf(
  {
    document,
    operation,
    rawVariableValues,
  }: Pick<ValidatedSubscriptionArgs, 'document' | 'operation' | 'rawVariableValues'>,
  principal: SharedPrincipal,
): string {
  const source = document.loc?.source.body ?? print(document);
  const beginnings = beginningsOf(document, operation);
  const variables = (operation.variableDefinitions ?? [])
    .map(({ variable }) => variable.name.value)
    .filter((name) => !beginnings.has(name) && Object.hasOwn(rawVariableValues ?? {}, name))
    .sort()
    .map((name) => [name, rawVariableValues?.[name]]);
  const text = JSON.stringify([source, operation.name?.value, variables, principal], canonical);
  return createHash('sha256').update(text).digest('base64');
}

/** Returns the variables that are used for nothing but saying where the operation begins. */
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
  // Two mentions: the variable's definition and this one use.
  return new Set(names.filter((name) => mentions.get(name) === 2));
}

/** Serves as a JSON replacer that sorts the members of objects and sets, and writes bigints as text. */
function canonical(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return `${value}n`;
  if (value instanceof Set) return [...value].sort();
  if (typeof value !== 'object' || value === null || Array.isArray(value) || 'toJSON' in value) return value;
  // A raw JSON number (`JSON.rawJSON`) has no prototype, and must stay as it is.
  return Object.getPrototypeOf(value) === null
    ? value
    : Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** How many events that are not shared are executed at once for each tenant. */
const OWN_AT_ONCE = 4;
const PAUSE_MAX_MS = 1_000;
const NEVER = new AbortController().signal;

/** Where the events of a subscription come from. */
export interface EventSource extends AsyncIterable<unknown> {
  /** Aborted when the subscription ends. */
  readonly signal?: AbortSignal | undefined;
  /** Checks whether an event was made only for this subscriber, such as a replayed one. */
  isOwn?(event: unknown): boolean;
  /**
   * Set by its reader: is called with each event for which a call of `next` waits, and returns whether it has sent the
   * event.
   */
  sendEventNow?: (event: object) => boolean;
}

/** The results of a subscription. */
export interface EventResults extends AsyncIterator<ExecutionResult> {
  /**
   * Set by who sends them: sends a result that is ready while a call of `next` waits, and returns true; false if it
   * cannot, and the call returns the result.
   */
  sendNow?: ((result: ExecutionResult | undefined) => boolean) | undefined;
}

/**
 * Executes the events of subscriptions. Each tenant has a few executions at once of events that are not shared. An
 * execution that is refused because the tenant's connections are in use is repeated after a pause: a subscriber gets
 * the event, or ends.
 */
export class EventExecutions {
  readonly results: SharedResults;
  readonly #own = new Semaphore({
    permits: Number.POSITIVE_INFINITY,
    share: OWN_AT_ONCE,
    maxWaiting: Number.POSITIVE_INFINITY,
  });
  /** The tenants whose last execution was refused. */
  readonly #overloaded = new Set<string>();

  constructor(results: SharedResults) {
    this.results = results;
  }

  /**
   * Returns the result for an event: a shared one, or the one that `execute` gives.
   * @throws SlowConsumerError when the tenant's connections have been in use for 10 s; the reason of the subscriber's
   * signal.
   */
  async answer(
    event: object,
    {
      nodeId,
      key,
      source,
    }: {
      nodeId: string;
      /** The key of the results that it shares with other subscriptions. */
      key: string;
      source: EventSource;
    },
    execute: () => Promise<ExecutionResult>,
  ): Promise<ExecutionResult> {
    const { signal = NEVER } = source;
    const worker = { key: nodeId };
    const givesUpAtMs = Date.now() + OVERLOAD_MAX_MS;
    const giveUpInTime = () => {
      if (Date.now() >= givesUpAtMs) throw new SlowConsumerError();
    };
    const own = async () => {
      // Those who have waited as long end together.
      if (this.#overloaded.has(nodeId)) giveUpInTime();
      return runCooperatively(() => this.results.own(event, execute()), worker);
    };
    const shared = () => runCooperatively(() => this.results.shared(event, key, execute), worker);
    for (let failures = 1; ; failures += 1) {
      const result = await (source.isOwn?.(event) ? this.#own.run(nodeId, own, signal) : shared());
      if (!isOverloaded(result)) {
        this.#overloaded.delete(nodeId);
        return result;
      }
      this.#overloaded.add(nodeId);
      giveUpInTime();
      await pause(backoffMs(failures, { maxMs: PAUSE_MAX_MS }), signal);
      signal.throwIfAborted();
    }
  }
}

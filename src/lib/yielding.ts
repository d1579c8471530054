import { setTimeout as delay, setImmediate as nextIteration, setImmediate as nextTick } from 'node:timers/promises';

/**
 * How long one worker's work runs before another's, and how long such work runs in one iteration of the event loop
 * before other work: once for those that wait, and once for those that do not; in milliseconds.
 */
const SLICE_MS = 5;
/** A slice of at least so long is followed by a rest. */
const LONG_MS = 2 * SLICE_MS;

/** Those on whose behalf work is done: a tenant, or another kind of caller. */
export interface Worker {
  /** All work with the same key shares its turns. */
  readonly key: string;
  /** Why no more work is done: the caller has left, or its request was refused. Undefined until then. */
  readonly stopped?: Error | undefined;
}

/** Work that no caller waits for. */
const SYSTEM: Worker = { key: '' };

/** What resumes those who wait for their turn, in the order in which they came: requests that are begun, and others. */
class Queue {
  readonly begun: (() => void)[] = [];
  readonly others: (() => void)[] = [];

  get isEmpty(): boolean {
    return this.begun.length + this.others.length === 0;
  }
}

/** The queues by the key of their worker. The keys are in the order in which they are served. */
const queues = new Map<string, Queue>();
/** The keys of workers who rest until the tick, because their last slices took too long. */
const resting = new Set<string>();
let restUntilTick = 0;
/** The keys of the workers that have come in this interval. */
const present = new Set<string>();
const PRESENT_MS = 1_000;
let presentUntilTick = 0;
let isServing = false;
let endsAtTick = 0;

/** Notes that a worker has come. Rests are for others: while one worker is alone, it has none. */
export function notePresence(key: string): void {
  const nowTick = performance.now();
  if (nowTick > presentUntilTick) {
    present.clear();
    presentUntilTick = nowTick + PRESENT_MS;
  }
  present.add(key);
}

/**
 * Runs a short piece of work that a caller feeds: at once, or in a later iteration of the event loop if such work has
 * run for long enough in this one, or other work of the same worker waits. Workers take turns, so that none waits for
 * long, however much the others bring; and work that cannot be divided leaves as much time to others that are present
 * as it takes beyond its slice. Further steps of requests that have begun (`isBegun`) go before the first steps of
 * others, in the order in which they came: what the requests have made of their bodies is freed sooner.
 * @throws what has stopped the worker, if the work had to wait.
 */
export function runCooperatively<Result>(
  work: () => Result,
  worker: Worker | undefined,
  { isBegun = false } = {},
): Result | Promise<Awaited<Result>> {
  return (nextTurn(worker ?? SYSTEM, isBegun)?.then(work) ?? work()) as Result | Promise<Awaited<Result>>;
}

/** Resolves in the turn of the worker; undefined if that is now. */
function nextTurn(worker: Worker, isBegun: boolean): Promise<void> | undefined {
  if (!isServing) {
    isServing = true;
    endsAtTick = performance.now() + SLICE_MS;
    void serve();
  }
  const queue = queues.get(worker.key);
  if (!queue && performance.now() < endsAtTick) return undefined;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const resume = () => (worker.stopped ? reject(worker.stopped) : resolve());
  const { begun, others } = queues.getOrInsertComputed(worker.key, () => new Queue());
  (isBegun ? begun : others).push(resume);
  return promise;
}

async function serve(): Promise<void> {
  do {
    await (resting.size > 0 ? delay(1) : nextIteration());
    endsAtTick = performance.now() + SLICE_MS;
    if (performance.now() >= restUntilTick) resting.clear();
    for (const [key, queue] of queues) {
      if (performance.now() >= endsAtTick) break;
      if (!resting.has(key)) await serveSlice(key, queue);
    }
    endsAtTick = performance.now() + SLICE_MS;
  } while (queues.size > 0);
  isServing = false;
}

/** Runs a slice of the work of a worker, who then goes behind all others. */
async function serveSlice(key: string, queue: Queue): Promise<void> {
  const startedAtTick = performance.now();
  let tookMs = 0;
  do {
    (queue.begun.shift() ?? queue.others.shift())?.();
    // The resumed work first runs up to its next wait for a timer or for I/O.
    await new Promise<void>((resolve) => process.nextTick(resolve));
    tookMs = performance.now() - startedAtTick;
  } while (!queue.isEmpty && tookMs < SLICE_MS);
  queues.delete(key);
  if (!queue.isEmpty) queues.set(key, queue);
  if (tookMs < LONG_MS || present.size < 2) return;
  restUntilTick = Math.max(restUntilTick, performance.now()) + tookMs - SLICE_MS;
  resting.add(key);
}

const rawJson = JSON as unknown as { isRawJSON(value: object): boolean };

/** The length of JSON text that is made at once, and roughly the length of a slice, in UTF-16 code units. */
export const SLICE_LENGTH = 64 * 1024;
/** The assumed JSON length of a number, boolean or null. */
const SCALAR_LENGTH = 8;

/** Checks whether the JSON of a value is short enough to be made at once, without making it. */
export function isShort(value: unknown): boolean {
  return lengthLeft(value, SLICE_LENGTH) >= 0;
}

/** Returns about the length of the JSON of a value, without making it. */
export function jsonLength(value: unknown): number {
  return Number.MAX_SAFE_INTEGER - lengthLeft(value, Number.MAX_SAFE_INTEGER);
}

/** Returns what a value leaves of a length; stops below zero, so that it looks at no more members than fit. */
function lengthLeft(value: unknown, length: number): number {
  if (typeof value === 'string') return length - value.length;
  if (!hasMembers(value)) return length - SCALAR_LENGTH;
  let left = length - SCALAR_LENGTH;
  for (const name in value) {
    left = lengthLeft(value[name], left - name.length);
    if (left < 0) break;
  }
  return left;
}

/** Checks whether a value is an array or object that JSON shows by its members. */
function hasMembers(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !('toJSON' in value) && !rawJson.isRawJSON(value);
}

/** Yields the JSON of a value, as `JSON.stringify` has it, in slices of about 64 Ki characters. */
export function* jsonSlices(value: unknown): Generator<string> {
  let slice = '';
  for (const part of partsOf(value)) {
    slice += part;
    if (slice.length < SLICE_LENGTH) continue;
    yield slice;
    slice = '';
  }
  if (slice !== '') yield slice;
}

function* partsOf(value: unknown): Generator<string> {
  if (!hasMembers(value) || isShort(value)) {
    yield JSON.stringify(value) ?? 'null';
    return;
  }
  const isList = Array.isArray(value);
  let before = isList ? '[' : '{';
  for (const [name, member] of Object.entries(value)) {
    if (!isList && (member === undefined || typeof member === 'function')) continue;
    yield isList ? before : `${before}${JSON.stringify(name)}:`;
    yield* partsOf(member);
    before = ',';
  }
  yield `${before === '{' ? '{' : ''}${isList ? ']' : '}'}`;
}

/**
 * Returns the JSON of a value, or undefined if that is longer than a number of bytes. The event loop runs other work
 * after each slice, and each is made in a turn of the worker, so that a long text delays no other work. `grow` is called
 * with the bytes so far, and awaited.
 */
export async function limitedJson(
  value: unknown,
  maxBytes: number,
  worker: Worker | undefined,
  grow?: (bytes: number) => Promise<void> | undefined,
): Promise<string | undefined> {
  const slices: string[] = [];
  let bytes = 0;
  const remainingSlices = jsonSlices(value);
  for (
    let next = remainingSlices.next();
    !next.done;
    next = await runCooperatively(() => remainingSlices.next(), worker)
  ) {
    bytes += Buffer.byteLength(next.value);
    if (bytes > maxBytes) return undefined;
    slices.push(next.value);
    await grow?.(bytes);
    await nextTick();
  }
  return slices.join('');
}

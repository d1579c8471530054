import { setImmediate as nextIteration } from 'node:timers/promises';

/**
 * How long one worker's work runs before another's, and how long such work runs in one iteration of the event loop
 * before other work: once for those that wait, and once for those that do not; in milliseconds.
 */
const SLICE_MS = 5;

/** Those on whose behalf work is done: a tenant, or another kind of caller. */
export interface Worker {
  /** All work with the same key shares its turns. */
  readonly key: string;
  /** Why no more work is done: the caller has left, or its request was refused. Undefined until then. */
  readonly stopped?: Error | undefined;
}

/** Work that no caller waits for. */
const SYSTEM: Worker = { key: '' };

/** What resumes those who wait, by the key of their worker. The keys are in the order in which they are served. */
const queues = new Map<string, (() => void)[]>();
let isServing = false;
let endsAtTick = 0;

/**
 * Runs a short piece of work that a caller feeds: at once, or in a later iteration of the event loop if such work has
 * run for long enough in this one, or other work of the same worker waits. Workers take turns, so that none waits for
 * long, however much the others bring.
 * @throws what has stopped the worker, if the work had to wait.
 */
export function runCooperatively<Result>(
  work: () => Result,
  worker: Worker | undefined,
): Result | Promise<Awaited<Result>> {
  return (nextTurn(worker ?? SYSTEM)?.then(work) ?? work()) as Result | Promise<Awaited<Result>>;
}

/** Resolves in the turn of the worker; undefined if that is now. */
function nextTurn(worker: Worker): Promise<void> | undefined {
  if (!isServing) {
    isServing = true;
    endsAtTick = performance.now() + SLICE_MS;
    void serve();
  }
  const queue = queues.get(worker.key);
  if (!queue && performance.now() < endsAtTick) return undefined;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const resume = () => (worker.stopped ? reject(worker.stopped) : resolve());
  if (queue) queue.push(resume);
  else queues.set(worker.key, [resume]);
  return promise;
}

async function serve(): Promise<void> {
  do {
    await nextIteration();
    endsAtTick = performance.now() + SLICE_MS;
    for (let [next] = queues; next && performance.now() < endsAtTick; [next] = queues) await serveSlice(...next);
    endsAtTick = performance.now() + SLICE_MS;
  } while (queues.size > 0);
  isServing = false;
}

/** Runs a slice of the work of a worker, who then goes behind all others. */
async function serveSlice(key: string, queue: (() => void)[]): Promise<void> {
  const sliceEndsAtTick = performance.now() + SLICE_MS;
  do {
    queue.shift()?.();
    // The resumed work first runs up to its next wait for a timer or for I/O.
    await new Promise<void>((resolve) => process.nextTick(resolve));
  } while (queue.length > 0 && performance.now() < sliceEndsAtTick);
  queues.delete(key);
  if (queue.length > 0) queues.set(key, queue);
}

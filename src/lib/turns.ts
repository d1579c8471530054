import { setImmediate as nextIteration } from 'node:timers/promises';

/** How long the work of callers may run in one iteration of the event loop, in milliseconds. */
const TURN_MS = 5;

/** Resume those who wait, in the order in which they came. */
const waiting: (() => void)[] = [];
let isServing = false;
let endsAtTick = 0;

/**
 * Runs a short piece of work that a caller feeds: at once, or in a later iteration of the event loop if such work has
 * run for long enough in this one. Other work is then never held up for long, however much callers bring.
 */
export function inTurn<Result>(work: () => Result): Result | Promise<Awaited<Result>> {
  return (nextTurn()?.then(work) ?? work()) as Result | Promise<Awaited<Result>>;
}

/** Resolves in the turn of the caller; undefined if that is now. */
function nextTurn(): Promise<void> | undefined {
  if (!isServing) {
    isServing = true;
    endsAtTick = performance.now() + TURN_MS;
    void serve();
  }
  if (waiting.length === 0 && performance.now() < endsAtTick) return undefined;
  const { promise, resolve } = Promise.withResolvers<void>();
  waiting.push(resolve);
  return promise;
}

async function serve(): Promise<void> {
  do {
    await nextIteration();
    endsAtTick = performance.now() + TURN_MS;
    for (let resume = waiting.shift(); resume; ) {
      resume();
      // The resumed work first runs up to its next wait for a timer or for I/O.
      await new Promise<void>((resolve) => process.nextTick(resolve));
      resume = performance.now() < endsAtTick ? waiting.shift() : undefined;
    }
  } while (waiting.length > 0);
  isServing = false;
}

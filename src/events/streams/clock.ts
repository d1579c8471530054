const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** A source of time and timers, which tests can replace. */
export interface Clock {
  nowMs(): number;
  /** Calls back once after `ms` milliseconds, at most 2^31 - 1. Returns a function that cancels the timer. */
  after(ms: number, callback: () => void): () => void;
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  after: (ms, callback) => {
    const timer = setTimeout(callback, ms);
    return () => clearTimeout(timer);
  },
};

/**
 * Calls back when the clock has reached `atMs` (milliseconds since 1970), however distant. Returns a function that
 * cancels it.
 */
export function at(clock: Clock, atMs: number, callback: () => void): () => void {
  let cancel = clock.after(Math.min(Math.max(0, atMs - clock.nowMs()), MAX_TIMEOUT_MS), () => {
    // A timer may fire early, and it cannot be set for more than 24 days.
    if (clock.nowMs() >= atMs) callback();
    else cancel = at(clock, atMs, callback);
  });
  return () => cancel();
}

/**
 * Resolves after `ms` milliseconds.
 * @throws the reason of the signal as soon as it is aborted.
 */
export async function sleep(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const cancel = clock.after(ms, resolve);
  const abort = () => {
    cancel();
    reject(signal.reason);
  };
  signal.addEventListener('abort', abort, { once: true });
  await promise;
  signal.removeEventListener('abort', abort);
}

const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** Time as the realtime parts take it. */
export interface Clock {
  nowMs(): number;
  /** Calls back once after `ms`, at most 2^31 - 1. @returns the function that cancels it. */
  after(ms: number, callback: () => void): () => void;
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  after: (ms, callback) => {
    const timer = setTimeout(callback, ms);
    return () => clearTimeout(timer);
  },
};

/** Calls back when the clock has reached `atMs`, however far that is. @returns the function that cancels it. */
export function at(clock: Clock, atMs: number, callback: () => void): () => void {
  const remainingMs = Math.max(0, atMs - clock.nowMs());
  let cancel = clock.after(Math.min(remainingMs, MAX_TIMEOUT_MS), () => {
    // A timer may come early, and reaches no further than 24 days.
    if (clock.nowMs() >= atMs) callback();
    else cancel = at(clock, atMs, callback);
  });
  return () => cancel();
}

/** Resolves after `ms`. @throws the signal's reason, as soon as it is aborted. */
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

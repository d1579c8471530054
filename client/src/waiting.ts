/** Returns milliseconds to wait before attempt `retries + 1`: 0.5 s, doubled up to the longest, with jitter. */
export function backoff(retries: number, longestMs = 15_000): number {
  return Math.min(500 * 2 ** retries, longestMs) * (0.75 + Math.random() / 4);
}

/** The longest pause before a client connects again that has nothing else to do. */
export const PROMPT_MS = 2_000;

export function isTimeout(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'TimeoutError';
}

/** Returns a controller that also aborts with the signal, until it is released. */
export function linked(signal?: AbortSignal): { controller: AbortController; release(): void } {
  const controller = new AbortController();
  const stop = () => controller.abort(signal?.reason);
  if (signal?.aborted) stop();
  signal?.addEventListener('abort', stop);
  return { controller, release: () => signal?.removeEventListener('abort', stop) };
}

/** Resolves as the promise does, until the controller aborts. Aborts it with a TimeoutError if that takes longer than `ms`. */
export async function inTime<T>(ms: number, controller: AbortController, promise: Promise<T>): Promise<T> {
  const late = () => controller.abort(new DOMException(`nothing received for ${ms / 1000} s`, 'TimeoutError'));
  const timer = setTimeout(late, ms);
  return abortable(promise, controller.signal).finally(() => clearTimeout(timer));
}

/**
 * Resolves after some milliseconds, or when a browser is online again. Rejects with the signal's reason when it aborts.
 * @param wakes what dispatches `online`: nothing in Node
 */
export async function pause(ms: number, signal?: AbortSignal | null, wakes?: Partial<EventTarget>): Promise<void> {
  const over = Promise.withResolvers<void>();
  const stop = () => over.resolve();
  const timer = setTimeout(stop, ms);
  wakes?.addEventListener?.('online', stop);
  await abortable(over.promise, signal).finally(() => {
    clearTimeout(timer);
    wakes?.removeEventListener?.('online', stop);
  });
}

/** Resolves as the promise does, or rejects with the signal's reason when it aborts first. */
export function abortable<T>(promise: Promise<T>, signal?: AbortSignal | null): Promise<T> {
  const { promise: first, resolve, reject } = Promise.withResolvers<T>();
  const stop = () => reject(signal?.reason);
  if (signal?.aborted) stop();
  signal?.addEventListener('abort', stop);
  promise.then(resolve, reject).finally(() => signal?.removeEventListener('abort', stop));
  return first;
}

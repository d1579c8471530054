/** Returns milliseconds to wait before attempt `retries + 1`: 0.5 s, doubled up to 15 s, with jitter. */
export function backoff(retries: number): number {
  return Math.min(500 * 2 ** retries, 15_000) * (0.75 + Math.random() / 4);
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

/** Resolves after some milliseconds. Rejects with the signal's reason when it aborts. */
export async function pause(ms: number, signal?: AbortSignal | null): Promise<void> {
  const over = Promise.withResolvers<void>();
  const timer = setTimeout(over.resolve, ms);
  await abortable(over.promise, signal).finally(() => clearTimeout(timer));
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

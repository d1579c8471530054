const TICK_MS = 100;

/**
 * Waits for some work, but not for ever.
 *
 * The time is counted in turns of the event loop, so that a process that stood still itself first reads what has come
 * meanwhile: a plain timer would end before.
 * @throws Error when the work has not ended in about `ms` milliseconds; what it rejects with.
 */
export async function inTime<T>(work: Promise<T>, ms: number): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  let left = Math.ceil(ms / TICK_MS);
  const timer = setInterval(() => {
    left -= 1;
    if (left === 0) reject(new Error(`no answer in ${ms} ms`));
  }, TICK_MS);
  try {
    return await Promise.race([work, late]);
  } finally {
    clearInterval(timer);
  }
}

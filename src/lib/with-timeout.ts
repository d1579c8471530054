/** A timer that fires later than this was held up by the process itself. */
const LATE_MS = 20;
/** How long such a process reads what has come meanwhile. */
const GRACE_MS = 100;

/**
 * Waits for `work`, which goes on by itself where it takes longer than `ms` milliseconds. A process that stood still gets
 * 100 ms more, in which it reads what has come meanwhile: a plain timer would fire first.
 * @throws what `timedOut` makes, after that time; what `work` rejects with.
 */
export async function withTimeout<Result>(
  work: Promise<Result>,
  ms: number,
  timedOut: () => Error = () => new Error(`no answer in ${ms} ms`),
): Promise<Result> {
  const { promise: timeout, reject } = Promise.withResolvers<never>();
  const expire = () => reject(timedOut());
  const dueTick = performance.now() + ms;
  let timer = setTimeout(() => {
    if (performance.now() > dueTick + LATE_MS) timer = setTimeout(expire, GRACE_MS);
    else expire();
  }, ms);
  try {
    return await Promise.race([work, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

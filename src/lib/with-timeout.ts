/** A timer that fires more than this late, in milliseconds, shows that the process itself was blocked. */
const LATE_MS = 20;
/** The extra time, in milliseconds, in which a process that was blocked can read what has arrived meanwhile. */
const GRACE_MS = 100;

/**
 * Waits at most `ms` milliseconds for `work`, which is not cancelled by the timeout. If the process was blocked
 * meanwhile, it waits 100 ms more, so that a result that has already arrived is read before the timer counts.
 * @throws what `timedOut` returns, when the time has passed; what `work` rejects with.
 */
export function withTimeout<Result>(
  work: Promise<Result>,
  ms: number,
  timedOut: () => Error = () => new Error(`no response within ${ms} ms`),
): Promise<Result> {
  const { promise, resolve, reject } = Promise.withResolvers<Result>();
  const expire = () => reject(timedOut());
  const dueTick = performance.now() + ms;
  let timer = setTimeout(() => {
    if (performance.now() > dueTick + LATE_MS) timer = setTimeout(expire, GRACE_MS);
    else expire();
  }, ms);
  work.then(resolve, reject).finally(() => clearTimeout(timer));
  return promise;
}

import { setTimeout as delay } from 'node:timers/promises';

/**
 * Calls `send` so many times at an even rate, each call on time whether or not those before it have ended; resolves when
 * all have. `dueAt` is when a call was due, as of `performance.now()`. A latency counts from it: counted from the sending,
 * it would leave out what requests wait while a slow server keeps the sender busy.
 */
export async function atRate(
  perSecond: number,
  count: number,
  send: (index: number, dueAt: number) => Promise<unknown>,
): Promise<void> {
  if (count === 0) return;
  const begun = performance.now();
  const dueAt = (index: number) => begun + (index * 1_000) / perSecond;
  const all = Promise.withResolvers<void>();
  let [sent, answered, hasFailed] = [0, 0, false];

  function sendDue(): void {
    for (; sent < count && !hasFailed && dueAt(sent) <= performance.now(); sent += 1)
      send(sent, dueAt(sent)).then(onAnswer, onFailure);
  }

  /** Timers have whole milliseconds: at high rates answers are more often than they are. */
  function onAnswer(): void {
    answered += 1;
    if (answered === count) all.resolve();
    else sendDue();
  }

  function onFailure(error: unknown): void {
    hasFailed = true;
    all.reject(error);
  }

  const pace = async () => {
    for (sendDue(); sent < count && !hasFailed; sendDue()) await delay(Math.max(1, dueAt(sent) - performance.now()));
  };
  await Promise.all([all.promise, pace()]);
}

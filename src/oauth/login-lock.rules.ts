/** So many failed logins within `WINDOW_MS` lock a username for `WINDOW_MS`. */
export const FAILURES_TO_LOCK = 5;
export const WINDOW_MS = 15 * 60_000;

/**
 * When the lock of a username ends (decisions: passwords), in milliseconds since the epoch; undefined where it is not
 * locked. `failedAtMs` are its failed logins in any order: of more than the newest five nothing depends on the rest.
 */
export function lockedUntilMs(failedAtMs: readonly number[], nowMs: number): number | undefined {
  const newest = failedAtMs.toSorted((a, b) => b - a);
  const [last] = newest;
  const first = newest[FAILURES_TO_LOCK - 1];
  if (last === undefined || first === undefined || last - first >= WINDOW_MS) return undefined;
  const untilMs = last + WINDOW_MS;
  return nowMs < untilMs ? untilMs : undefined;
}

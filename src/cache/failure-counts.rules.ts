/** A failure's place among those of its key. */
export interface CountedFailure {
  /** With this one. */
  count: number;
  /** Whole seconds until counting begins anew, at least 1. */
  resetInSeconds: number;
}

/** Failures of a key are counted for this long from the first one on. */
export const FAILURE_WINDOW_MS = 60_000;

/** Whole seconds until a window that began at `startedAtMs` ends, at least 1. */
export function secondsLeft(startedAtMs: number, nowMs: number): number {
  const leftMs = Math.min(startedAtMs + FAILURE_WINDOW_MS - nowMs, FAILURE_WINDOW_MS);
  return Math.max(1, Math.ceil(leftMs / 1_000));
}

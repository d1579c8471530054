/** The share of a monthly limit from which a client is near it. */
export const NEAR_SHARE = 0.8;

/** The result of counting a failure of a key. */
export interface CountedFailure {
  /** The number of failures in the window, this one included. */
  count: number;
  /** Whole seconds until the window ends and counting restarts, at least 1. */
  resetInSeconds: number;
}

/** The length of the window in which failures of a key are counted, from the first one on, in milliseconds. */
export const FAILURE_WINDOW_MS = 60_000;

/** Returns the whole seconds until the failure window that began at `startedAtMs` ends, from 1 to 60. */
export function secondsLeft(startedAtMs: number, nowMs: number): number {
  const leftMs = Math.min(startedAtMs + FAILURE_WINDOW_MS - nowMs, FAILURE_WINDOW_MS);
  return Math.max(1, Math.ceil(leftMs / 1_000));
}

/**
 * The fixed windows of rates, shortest first: aligned to the clock, `ms` long, and numbered from the Unix epoch. Each
 * with its name in header fields, and the members of a client's limits and counts.
 */
export const RATE_WINDOWS = [
  { name: 'Second', limit: 'perSecond', count: 'second', at: 'secondAt', ...every(1_000) },
  { name: 'Minute', limit: 'perMinute', count: 'minute', at: 'minuteAt', ...every(60_000) },
  { name: 'Hour', limit: 'perHour', count: 'hour', at: 'hourAt', ...every(3_600_000) },
] as const;

/** The window of a quota: the calendar month in UTC. */
export const QUOTA_WINDOW = {
  limit: 'perMonth',
  count: 'month',
  at: 'monthAt',
  numberOf: monthAtOf,
  startsAtMs: monthStartsAtMs,
} as const;

/** All windows, in the order in which the cache stores their counts. */
export const WINDOWS = [...RATE_WINDOWS, QUOTA_WINDOW] as const;

export type CountWindow = (typeof WINDOWS)[number];

/** How many requests a client may send in each window; 0 means no limit. */
export type RequestLimits = Readonly<Record<CountWindow['limit'], number>>;

/** How many requests a client has sent in a window of each kind, and the numbers of these windows. */
export type RequestCounts = Readonly<Record<CountWindow['count' | 'at'], number>>;

/** The counts after a request; counts of a window without a limit have no meaning. */
export interface CountedRequest extends RequestCounts {
  /** Both `refused` (a limit is used up) and `unknown` (the use of the month's quota is not known): nothing was counted. */
  readonly outcome: 'counted' | 'refused' | 'unknown';
}

export const NOTHING_COUNTED: RequestCounts = {
  secondAt: 0,
  second: 0,
  minuteAt: 0,
  minute: 0,
  hourAt: 0,
  hour: 0,
  monthAt: 0,
  month: 0,
};

function every(ms: number) {
  return { ms, numberOf: (nowMs: number) => Math.floor(nowMs / ms), startsAtMs: (number: number) => number * ms };
}

/**
 * Counts a request in the windows of the clock, or in none if a limit is used up. If the clock is behind a stored
 * window, the request counts in the stored one. `seed` is the quota used in the clock's month according to another
 * source: counting continues from the larger number.
 */
export function countRequest(
  stored: RequestCounts,
  limits: RequestLimits,
  nowMs: number,
  seed: number | undefined,
): CountedRequest {
  const hasQuota = limits.perMonth > 0;
  const windows: readonly CountWindow[] = hasQuota ? WINDOWS : RATE_WINDOWS;
  const counts = { ...stored };
  for (const { at, count, numberOf } of windows) {
    const clockAt = numberOf(nowMs);
    if (clockAt > counts[at]) [counts[at], counts[count]] = [clockAt, 0];
  }
  if (counts.monthAt > stored.monthAt && seed === undefined) return { ...stored, outcome: 'unknown' };
  if (hasQuota && counts.monthAt === monthAtOf(nowMs)) counts.month = Math.max(counts.month, seed ?? 0);
  const isFull = windows.some(({ limit, count }) => limits[limit] > 0 && counts[count] >= limits[limit]);
  if (!isFull) for (const { count } of windows) counts[count] += 1;
  return { ...counts, outcome: isFull ? 'refused' : 'counted' };
}

/** Returns the number of the calendar month in UTC: its year times twelve, plus 0 for January to 11 for December. */
export function monthAtOf(nowMs: number): number {
  const date = new Date(nowMs);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}

/** Returns when a numbered month begins, in milliseconds since the Unix epoch. */
export function monthStartsAtMs(monthAt: number): number {
  return Date.UTC(Math.floor(monthAt / 12), monthAt % 12);
}

/** Returns a numbered month as `YYYY-MM`. */
export function monthText(monthAt: number): string {
  return new Date(monthStartsAtMs(monthAt)).toISOString().slice(0, 7);
}

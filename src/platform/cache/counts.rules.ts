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

/** How many requests a client may send in each window; 0 means no limit. */
export interface RequestLimits {
  readonly perSecond: number;
  readonly perMinute: number;
  readonly perHour: number;
  /** The quota of a calendar month in UTC. */
  readonly perMonth: number;
}

/**
 * How many requests a client has sent, and in which windows. Seconds, minutes and hours are numbered from the Unix
 * epoch, months as `monthAtOf` does.
 */
export interface RequestCounts {
  readonly secondAt: number;
  readonly second: number;
  readonly minuteAt: number;
  readonly minute: number;
  readonly hourAt: number;
  readonly hour: number;
  readonly monthAt: number;
  readonly month: number;
}

/**
 * The outcome of counting a request. Both `refused` (a limit is used up) and `unknown` (the use of the month's quota is
 * not known) mean that nothing was counted.
 */
type CountOutcome = 'counted' | 'refused' | 'unknown';

/** The counts after a request; counts of a window without a limit have no meaning. */
export interface CountedRequest extends RequestCounts {
  readonly outcome: CountOutcome;
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

export const SECOND_MS = 1_000;
export const MINUTE_MS = 60_000;
export const HOUR_MS = 3_600_000;

/**
 * Counts a request in fixed windows aligned to the clock, or in none if a limit is used up. If the clock is behind a
 * stored window, the request counts in the stored one. `seed` is the quota used in the clock's month according to
 * another source: counting continues from the larger number.
 */
export function countRequest(
  stored: RequestCounts,
  limits: RequestLimits,
  nowMs: number,
  seed: number | undefined,
): CountedRequest {
  const secondAt = Math.max(stored.secondAt, Math.floor(nowMs / SECOND_MS));
  const minuteAt = Math.max(stored.minuteAt, Math.floor(nowMs / MINUTE_MS));
  const hourAt = Math.max(stored.hourAt, Math.floor(nowMs / HOUR_MS));
  const second = secondAt === stored.secondAt ? stored.second : 0;
  const minute = minuteAt === stored.minuteAt ? stored.minute : 0;
  const hour = hourAt === stored.hourAt ? stored.hour : 0;
  let { monthAt, month } = stored;
  if (limits.perMonth > 0) {
    const clockMonthAt = monthAtOf(nowMs);
    if (clockMonthAt > monthAt) {
      if (seed === undefined) return { ...stored, outcome: 'unknown' };
      monthAt = clockMonthAt;
      month = seed;
    } else if (clockMonthAt === monthAt && seed !== undefined && seed > month) month = seed;
  }
  const isFull =
    (limits.perSecond > 0 && second >= limits.perSecond) ||
    (limits.perMinute > 0 && minute >= limits.perMinute) ||
    (limits.perHour > 0 && hour >= limits.perHour) ||
    (limits.perMonth > 0 && month >= limits.perMonth);
  const one = isFull ? 0 : 1;
  return {
    outcome: isFull ? 'refused' : 'counted',
    secondAt,
    second: second + one,
    minuteAt,
    minute: minute + one,
    hourAt,
    hour: hour + one,
    monthAt,
    month: limits.perMonth > 0 ? month + one : month,
  };
}

/** Returns the number of the calendar month in UTC: its year times twelve, plus 0 for January to 11 for December. */
export function monthAtOf(nowMs: number): number {
  if (nowMs < monthStartMs || nowMs >= monthEndMs) rememberMonth(nowMs);
  return rememberedMonthAt;
}

/** Returns when a numbered month begins, in milliseconds since the Unix epoch. */
export function monthStartsAtMs(monthAt: number): number {
  return Date.UTC(Math.floor(monthAt / 12), monthAt % 12);
}

/** Returns a numbered month as `YYYY-MM`. */
export function monthText(monthAt: number): string {
  return new Date(monthStartsAtMs(monthAt)).toISOString().slice(0, 7);
}

// Cached, since every request needs the month and it rarely changes.
let monthStartMs = 0;
let monthEndMs = 0;
let rememberedMonthAt = 0;

function rememberMonth(nowMs: number): void {
  const date = new Date(nowMs);
  rememberedMonthAt = date.getUTCFullYear() * 12 + date.getUTCMonth();
  monthStartMs = monthStartsAtMs(rememberedMonthAt);
  monthEndMs = monthStartsAtMs(rememberedMonthAt + 1);
}

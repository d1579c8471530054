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

/** How many requests a client may make; 0: no limit. */
export interface RequestLimits {
  readonly perSecond: number;
  readonly perMinute: number;
  readonly perHour: number;
  /** The quota of a calendar month, UTC. */
  readonly perMonth: number;
}

/** What a client has used, and in which windows: each is numbered from the epoch on, months by `monthAt`. */
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

/** `refused`: something is used up, nothing was counted. `unknown`: so is nothing, since no count of the month is there. */
type CountOutcome = 'counted' | 'refused' | 'unknown';

/** The counts after a request; those of a window without a limit mean nothing. */
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
 * Counts a request in fixed windows aligned to the clock, or in none where one is full. A clock that is behind the
 * stored window counts in the stored one. `seed` is the quota used in the clock's month as known from elsewhere: the
 * larger one goes on.
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

/** The number of the calendar month, UTC: years times twelve, and January is 0. */
export function monthAtOf(nowMs: number): number {
  if (nowMs < monthStartMs || nowMs >= monthEndMs) rememberMonth(nowMs);
  return rememberedMonthAt;
}

/** When a numbered month begins, in ms since the epoch. */
export function monthStartsAtMs(monthAt: number): number {
  return Date.UTC(Math.floor(monthAt / 12), monthAt % 12);
}

/** A numbered month as `YYYY-MM`. */
export function monthText(monthAt: number): string {
  return new Date(monthStartsAtMs(monthAt)).toISOString().slice(0, 7);
}

// Asked with every request, and the result changes once a month.
let monthStartMs = 0;
let monthEndMs = 0;
let rememberedMonthAt = 0;

function rememberMonth(nowMs: number): void {
  const date = new Date(nowMs);
  rememberedMonthAt = date.getUTCFullYear() * 12 + date.getUTCMonth();
  monthStartMs = monthStartsAtMs(rememberedMonthAt);
  monthEndMs = monthStartsAtMs(rememberedMonthAt + 1);
}

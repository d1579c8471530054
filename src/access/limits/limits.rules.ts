import {
  HOUR_MS,
  MINUTE_MS,
  monthStartsAtMs,
  type RequestCounts,
  type RequestLimits,
  SECOND_MS,
} from '../../platform/cache/counts.rules.ts';

/** The verdict on a request: why it is refused, if it exceeds a limit of its client, and for how long. */
export interface LimitVerdict {
  readonly refusal: 'rate_limit_exceeded' | 'monthly_limit_exceeded' | undefined;
  /** The number of seconds until no limit is exceeded any more; 0 when none is. */
  readonly retryAfterSeconds: number;
}

/** The verdict for a request that was counted. */
export const WITHIN_LIMITS: LimitVerdict = { refusal: undefined, retryAfterSeconds: 0 };

/** A rate with the number of requests in its present window and the window's end, in ms since 1970. */
interface Rate {
  suffix: '-Second' | '-Minute' | '-Hour';
  limit: number;
  used: number;
  endsAtMs: number;
}

/** Returns the rates that the client has, shortest window first. */
function ratesOf({ perSecond, perMinute, perHour }: RequestLimits, counts: RequestCounts): Rate[] {
  const rates: Rate[] = [
    { suffix: '-Second', limit: perSecond, used: counts.second, endsAtMs: (counts.secondAt + 1) * SECOND_MS },
    { suffix: '-Minute', limit: perMinute, used: counts.minute, endsAtMs: (counts.minuteAt + 1) * MINUTE_MS },
    { suffix: '-Hour', limit: perHour, used: counts.hour, endsAtMs: (counts.hourAt + 1) * HOUR_MS },
  ];
  return rates.filter(({ limit }) => limit > 0);
}

/**
 * Returns the verdict on a request that was not counted. A rate takes precedence over the quota; the time to wait is
 * the longest of all exceeded limits.
 */
export function refusalOf(limits: RequestLimits, counts: RequestCounts, nowMs: number): LimitVerdict {
  const fullRates = ratesOf(limits, counts).filter(({ limit, used }) => used >= limit);
  const isMonthFull = limits.perMonth > 0 && counts.month >= limits.perMonth;
  const quotaEndsAtMs = isMonthFull ? monthStartsAtMs(counts.monthAt + 1) : 0;
  return {
    refusal: fullRates.length > 0 ? 'rate_limit_exceeded' : 'monthly_limit_exceeded',
    retryAfterSeconds: secondsUntil(Math.max(quotaEndsAtMs, ...fullRates.map(({ endsAtMs }) => endsAtMs)), nowMs),
  };
}

/**
 * Adds the headers of all limits of a client: the limit, what remains, and the seconds until the window ends. The
 * headers without the name of a window describe the rate with the fewest remaining requests; among equals the longest
 * window.
 */
export function addLimitHeaders(
  headers: Record<string, string>,
  limits: RequestLimits,
  counts: RequestCounts,
  nowMs: number,
): void {
  let tightest = { limit: 0, left: Number.POSITIVE_INFINITY, reset: 0 };
  for (const { suffix, limit, used, endsAtMs } of ratesOf(limits, counts)) {
    const rate = { limit, left: Math.max(0, limit - used), reset: secondsUntil(endsAtMs, nowMs) };
    addRate(headers, suffix, rate);
    const { left, reset } = tightest;
    if (rate.left < left || (rate.left === left && rate.reset >= reset)) tightest = rate;
  }
  if (tightest.limit > 0) addRate(headers, '', tightest);
  if (limits.perMonth > 0) {
    headers['X-MonthlyLimit-Limit'] = String(limits.perMonth);
    headers['X-MonthlyLimit-Remaining'] = String(Math.max(0, limits.perMonth - counts.month));
    headers['X-MonthlyLimit-Reset'] = String(secondsUntil(monthStartsAtMs(counts.monthAt + 1), nowMs));
  }
}

function addRate(
  headers: Record<string, string>,
  suffix: Rate['suffix'] | '',
  { limit, left, reset }: { limit: number; left: number; reset: number },
): void {
  headers[`X-Ratelimit-Limit${suffix}`] = String(limit);
  headers[`X-Ratelimit-Remaining${suffix}`] = String(left);
  headers[`X-Ratelimit-Reset${suffix}`] = String(reset);
}

/** Returns the number of seconds from `nowMs` to `endsAtMs`, rounded up, at least 1. */
function secondsUntil(endsAtMs: number, nowMs: number): number {
  return Math.max(1, Math.ceil((endsAtMs - nowMs) / 1_000));
}

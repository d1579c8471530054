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

/** The response headers that state a client's limits and what remains of them: names and values alternating. */
export type LimitHeaders = string[];

/** The names of the headers of a rate: its limit, what remains, and the seconds until its window ends. */
type RateNames = readonly [limit: string, remaining: string, reset: string];

const SECOND = rateNames('-Second');
const MINUTE = rateNames('-Minute');
const HOUR = rateNames('-Hour');
const TIGHTEST = rateNames('');

function rateNames(suffix: string): RateNames {
  return [`X-Ratelimit-Limit${suffix}`, `X-Ratelimit-Remaining${suffix}`, `X-Ratelimit-Reset${suffix}`];
}

/** A rate with the number of requests in its present window and the window's end, in ms since 1970. */
interface Rate {
  names: RateNames;
  limit: number;
  used: number;
  endsAtMs: number;
}

/** Returns the rates that the client has, shortest window first. */
function ratesOf({ perSecond, perMinute, perHour }: RequestLimits, counts: RequestCounts): Rate[] {
  const rates: Rate[] = [
    { names: SECOND, limit: perSecond, used: counts.second, endsAtMs: (counts.secondAt + 1) * SECOND_MS },
    { names: MINUTE, limit: perMinute, used: counts.minute, endsAtMs: (counts.minuteAt + 1) * MINUTE_MS },
    { names: HOUR, limit: perHour, used: counts.hour, endsAtMs: (counts.hourAt + 1) * HOUR_MS },
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
  headers: LimitHeaders,
  limits: RequestLimits,
  counts: RequestCounts,
  nowMs: number,
): void {
  let tightest = { limit: 0, left: Number.POSITIVE_INFINITY, reset: 0 };
  for (const { names, limit, used, endsAtMs } of ratesOf(limits, counts)) {
    const rate = { limit, left: Math.max(0, limit - used), reset: secondsUntil(endsAtMs, nowMs) };
    addRate(headers, names, rate);
    const { left, reset } = tightest;
    if (rate.left < left || (rate.left === left && rate.reset >= reset)) tightest = rate;
  }
  if (tightest.limit > 0) addRate(headers, TIGHTEST, tightest);
  if (limits.perMonth > 0) {
    const left = Math.max(0, limits.perMonth - counts.month);
    const reset = secondsUntil(monthStartsAtMs(counts.monthAt + 1), nowMs);
    headers.push('X-MonthlyLimit-Limit', String(limits.perMonth));
    headers.push('X-MonthlyLimit-Remaining', String(left), 'X-MonthlyLimit-Reset', String(reset));
  }
}

function addRate(
  headers: LimitHeaders,
  [nameOfLimit, nameOfLeft, nameOfReset]: RateNames,
  { limit, left, reset }: { limit: number; left: number; reset: number },
): void {
  headers.push(nameOfLimit, String(limit), nameOfLeft, String(left), nameOfReset, String(reset));
}

/** Sets the limit headers on a response. */
export function setLimitHeaders(res: { setHeader(name: string, value: string): unknown }, headers: LimitHeaders): void {
  for (let at = 1; at < headers.length; at += 2) res.setHeader(headers[at - 1] ?? '', headers[at] ?? '');
}

/** Returns the number of seconds from `nowMs` to `endsAtMs`, rounded up, at least 1. */
function secondsUntil(endsAtMs: number, nowMs: number): number {
  return Math.max(1, Math.ceil((endsAtMs - nowMs) / 1_000));
}

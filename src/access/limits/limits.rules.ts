import {
  type CountedRequest,
  HOUR_MS,
  MINUTE_MS,
  monthStartsAtMs,
  type RequestCounts,
  type RequestLimits,
  SECOND_MS,
} from '../../platform/cache/counts.rules.ts';
import { Refusal } from '../../platform/errors.ts';

/** The verdict on a request of a client. */
export interface LimitVerdict {
  /** The refusal of a request that exceeds a limit; undefined for one that was counted. */
  readonly refusal?: Refusal;
  /** The response headers that state the client's limits and what remains of them: names and values alternating. */
  readonly headers: readonly string[];
}

/** The names of the headers of a limit: its value, what remains, and the seconds until its window ends. */
type RateNames = readonly [limit: string, remaining: string, reset: string];

const SECOND = rateNames('-Second');
const MINUTE = rateNames('-Minute');
const HOUR = rateNames('-Hour');
const TIGHTEST = rateNames('');
const MONTH: RateNames = ['X-MonthlyLimit-Limit', 'X-MonthlyLimit-Remaining', 'X-MonthlyLimit-Reset'];

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
 * Returns the verdict on a request. Of exceeded limits a rate takes precedence over the quota; the time to wait is the
 * longest of all. The headers state the limit, what remains, and the seconds until the window ends. Those without the
 * name of a window describe the rate with the fewest remaining requests; among equals the longest window.
 */
export function verdictOf(limits: RequestLimits, counted: CountedRequest, nowMs: number): LimitVerdict {
  const rates = ratesOf(limits, counted);
  const headers = limitHeaders(rates, limits, counted, nowMs);
  if (counted.outcome === 'counted') return { headers };
  const fullRates = rates.filter(({ limit, used }) => used >= limit);
  const isMonthFull = limits.perMonth > 0 && counted.month >= limits.perMonth;
  const quotaEndsAtMs = isMonthFull ? monthStartsAtMs(counted.monthAt + 1) : 0;
  const retryAfterSeconds = secondsUntil(Math.max(quotaEndsAtMs, ...fullRates.map(({ endsAtMs }) => endsAtMs)), nowMs);
  const code = fullRates.length > 0 ? 'rate_limit_exceeded' : 'monthly_limit_exceeded';
  return { refusal: new Refusal(code, { retryAfterSeconds }), headers };
}

function limitHeaders(
  rates: readonly Rate[],
  { perMonth }: RequestLimits,
  counts: RequestCounts,
  nowMs: number,
): string[] {
  const headers: string[] = [];
  let tightest = { limit: 0, left: Number.POSITIVE_INFINITY, reset: 0 };
  for (const { names, limit, used, endsAtMs } of rates) {
    const rate = { limit, left: Math.max(0, limit - used), reset: secondsUntil(endsAtMs, nowMs) };
    addRate(headers, names, rate);
    const { left, reset } = tightest;
    if (rate.left < left || (rate.left === left && rate.reset >= reset)) tightest = rate;
  }
  if (tightest.limit > 0) addRate(headers, TIGHTEST, tightest);
  if (perMonth > 0) {
    const left = Math.max(0, perMonth - counts.month);
    addRate(headers, MONTH, { limit: perMonth, left, reset: secondsUntil(monthStartsAtMs(counts.monthAt + 1), nowMs) });
  }
  return headers;
}

function addRate(
  headers: string[],
  [nameOfLimit, nameOfLeft, nameOfReset]: RateNames,
  { limit, left, reset }: { limit: number; left: number; reset: number },
): void {
  headers.push(nameOfLimit, String(limit), nameOfLeft, String(left), nameOfReset, String(reset));
}

/** Returns the number of seconds from `nowMs` to `endsAtMs`, rounded up, at least 1. */
function secondsUntil(endsAtMs: number, nowMs: number): number {
  return Math.max(1, Math.ceil((endsAtMs - nowMs) / 1_000));
}

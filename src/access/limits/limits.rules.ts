import {
  HOUR_MS,
  MINUTE_MS,
  monthStartsAtMs,
  type RequestCounts,
  type RequestLimits,
  SECOND_MS,
} from '../../platform/cache/counts.rules.ts';
import type { ClientRecord } from '../identity/client-record.ts';

/** Says whether a request is within the limits of its client, and otherwise why not and for how long. */
export interface LimitVerdict {
  readonly refusal: 'rate_limit_exceeded' | 'monthly_limit_exceeded' | undefined;
  /** Seconds until no limit is exceeded any more; 0 where none is. */
  readonly retryAfterSeconds: number;
}

/** The verdict for a request that was counted. */
export const WITHIN_LIMITS: LimitVerdict = { refusal: undefined, retryAfterSeconds: 0 };

const known = new WeakMap<ClientRecord, RequestLimits | undefined>();

/** Returns the limits of a client; undefined where it has none. */
export function limitsOf(client: ClientRecord): RequestLimits | undefined {
  if (known.has(client)) return known.get(client);
  const { perSecond = 0, perMinute = 0, perHour = 0 } = client.rateLimit;
  const limits = { perSecond, perMinute, perHour, perMonth: client.monthlyLimit ?? 0 };
  const given = perSecond + perMinute + perHour + limits.perMonth > 0 ? limits : undefined;
  known.set(client, given);
  return given;
}

/**
 * Returns why a request was not counted. A rate goes before the quota; the time to wait is the longest of all limits
 * that are exceeded.
 */
export function refusalOf(limits: RequestLimits, counts: RequestCounts, nowMs: number): LimitVerdict {
  const { perSecond, perMinute, perHour, perMonth } = limits;
  let ratesEndAtMs = 0;
  if (isFull(perSecond, counts.second)) ratesEndAtMs = secondEndsAtMs(counts);
  if (isFull(perMinute, counts.minute)) ratesEndAtMs = Math.max(ratesEndAtMs, minuteEndsAtMs(counts));
  if (isFull(perHour, counts.hour)) ratesEndAtMs = Math.max(ratesEndAtMs, hourEndsAtMs(counts));
  const quotaEndsAtMs = isFull(perMonth, counts.month) ? monthStartsAtMs(counts.monthAt + 1) : 0;
  return {
    refusal: ratesEndAtMs > 0 ? 'rate_limit_exceeded' : 'monthly_limit_exceeded',
    retryAfterSeconds: secondsUntil(Math.max(ratesEndAtMs, quotaEndsAtMs), nowMs),
  };
}

/**
 * Adds the headers of all limits of a client: what is allowed, what is left, and seconds until the window ends. Those
 * without the name of a window describe the rate with the fewest requests left; among equals the longest.
 */
export function addLimitHeaders(
  headers: Record<string, string>,
  limits: RequestLimits,
  counts: RequestCounts,
  nowMs: number,
): void {
  const { perSecond, perMinute, perHour, perMonth } = limits;
  let limit = 0;
  let left = Number.POSITIVE_INFINITY;
  let reset = 0;
  // From the shortest to the longest: among equals the later one stays.
  if (perSecond > 0) {
    limit = perSecond;
    left = leftOf(perSecond, counts.second);
    reset = secondsUntil(secondEndsAtMs(counts), nowMs);
    addRate(headers, '-Second', limit, left, reset);
  }
  if (perMinute > 0) {
    const leftNow = leftOf(perMinute, counts.minute);
    const resetNow = secondsUntil(minuteEndsAtMs(counts), nowMs);
    addRate(headers, '-Minute', perMinute, leftNow, resetNow);
    if (leftNow < left || (leftNow === left && resetNow >= reset))
      [limit, left, reset] = [perMinute, leftNow, resetNow];
  }
  if (perHour > 0) {
    const leftNow = leftOf(perHour, counts.hour);
    const resetNow = secondsUntil(hourEndsAtMs(counts), nowMs);
    addRate(headers, '-Hour', perHour, leftNow, resetNow);
    if (leftNow < left || (leftNow === left && resetNow >= reset)) [limit, left, reset] = [perHour, leftNow, resetNow];
  }
  if (limit > 0) addRate(headers, '', limit, left, reset);
  if (perMonth > 0) {
    headers['X-MonthlyLimit-Limit'] = String(perMonth);
    headers['X-MonthlyLimit-Remaining'] = String(leftOf(perMonth, counts.month));
    headers['X-MonthlyLimit-Reset'] = String(secondsUntil(monthStartsAtMs(counts.monthAt + 1), nowMs));
  }
}

/** Returns seconds from now, at least 1. */
function secondsUntil(endsAtMs: number, nowMs: number): number {
  return Math.max(1, Math.ceil((endsAtMs - nowMs) / 1_000));
}

type Suffix = '' | '-Second' | '-Minute' | '-Hour';

function addRate(headers: Record<string, string>, suffix: Suffix, limit: number, left: number, reset: number): void {
  headers[`X-Ratelimit-Limit${suffix}`] = String(limit);
  headers[`X-Ratelimit-Remaining${suffix}`] = String(left);
  headers[`X-Ratelimit-Reset${suffix}`] = String(reset);
}

function isFull(limit: number, used: number): boolean {
  return limit > 0 && used >= limit;
}

function leftOf(limit: number, used: number): number {
  return Math.max(0, limit - used);
}

function secondEndsAtMs({ secondAt }: RequestCounts): number {
  return (secondAt + 1) * SECOND_MS;
}

function minuteEndsAtMs({ minuteAt }: RequestCounts): number {
  return (minuteAt + 1) * MINUTE_MS;
}

function hourEndsAtMs({ hourAt }: RequestCounts): number {
  return (hourAt + 1) * HOUR_MS;
}

import { CacheUnavailableError } from './cache-unavailable-error.ts';
import {
  type CountedRequest,
  HOUR_MS,
  MINUTE_MS,
  monthAtOf,
  NOTHING_COUNTED,
  type RequestLimits,
  SECOND_MS,
} from './request-counts.rules.ts';

type LimitArguments = readonly [perSecond: string, perMinute: string, perHour: string, perMonth: string];

const known = new WeakMap<RequestLimits, LimitArguments>();

/** The limits as the script takes them. */
export function limitArguments(limits: RequestLimits): LimitArguments {
  const before = known.get(limits);
  if (before) return before;
  const { perSecond, perMinute, perHour, perMonth } = limits;
  const texts: LimitArguments = [`${perSecond}`, `${perMinute}`, `${perHour}`, `${perMonth}`];
  known.set(limits, texts);
  return texts;
}

/**
 * What the script has answered to a clock that shows `nowMs`, for each of so many requests: those that were counted come
 * first, each with the counts after it.
 */
export function parseCounts(reply: unknown, nowMs: number, requests: number): CountedRequest[] {
  const all = Array.from({ length: requests }, (_, index) => index);
  if (reply === -1) return all.map(() => ({ ...NOTHING_COUNTED, outcome: 'unknown' }));
  if (!Array.isArray(reply)) throw new CacheUnavailableError(new Error('a count has another form'));
  const counts: number[] = reply;
  const [counted = 0, second = 0, minute = 0, hour = 0, month = 0, secondAt, minuteAt, hourAt, monthAt] = counts;
  return all.map((index) => {
    const after = Math.max(0, counted - 1 - index);
    return {
      outcome: index < counted ? 'counted' : 'refused',
      secondAt: secondAt ?? Math.floor(nowMs / SECOND_MS),
      second: second - after,
      minuteAt: minuteAt ?? Math.floor(nowMs / MINUTE_MS),
      minute: minute - after,
      hourAt: hourAt ?? Math.floor(nowMs / HOUR_MS),
      hour: hour - after,
      monthAt: monthAt ?? monthAtOf(nowMs),
      month: month - after,
    };
  });
}

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

/** What the script has answered to a clock that shows `nowMs`. */
export function parseCount(reply: unknown, nowMs: number): CountedRequest {
  if (reply === -1) return { ...NOTHING_COUNTED, outcome: 'unknown' };
  if (!Array.isArray(reply)) throw new CacheUnavailableError(new Error('a count has another form'));
  const counts: number[] = reply;
  const [outcome, second = 0, minute = 0, hour = 0, month = 0, secondAt, minuteAt, hourAt, monthAt] = counts;
  return {
    outcome: outcome === 1 ? 'counted' : 'refused',
    secondAt: secondAt ?? Math.floor(nowMs / SECOND_MS),
    second,
    minuteAt: minuteAt ?? Math.floor(nowMs / MINUTE_MS),
    minute,
    hourAt: hourAt ?? Math.floor(nowMs / HOUR_MS),
    hour,
    monthAt: monthAt ?? monthAtOf(nowMs),
    month,
  };
}

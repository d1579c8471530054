import type { Instant } from '../lib/iso-instant.ts';
import type { TimePeriod } from './wallet-rule.ts';

const SECONDS = { hour: 3_600n, day: 86_400n, week: 604_800n } as const;

/**
 * Where the window of `count` periods that ends at an instant begins; undefined: before every time there is. A day has 24
 * hours and a week seven days. A month or year is the calendar's in UTC: it begins at the same time of the same day, or of
 * the month's last day where the month has no such day.
 */
export function windowStart(end: Instant, count: number, period: TimePeriod): Instant | undefined {
  switch (period) {
    case 'hour':
    case 'day':
    case 'week':
      return { seconds: end.seconds - BigInt(count) * SECONDS[period], nanos: end.nanos };
    case 'month':
      return monthsBefore(end, count);
    case 'year':
      return monthsBefore(end, count * 12);
    default:
      return period satisfies never;
  }
}

function monthsBefore(end: Instant, months: number): Instant | undefined {
  const start = new Date(Number(end.seconds) * 1_000);
  const day = start.getUTCDate();
  start.setUTCDate(1);
  start.setUTCMonth(start.getUTCMonth() - months);
  if (Number.isNaN(start.getTime())) return undefined;
  const nextMonth = new Date(start);
  nextMonth.setUTCMonth(start.getUTCMonth() + 1, 0);
  start.setUTCDate(Math.min(day, nextMonth.getUTCDate()));
  return { seconds: BigInt(Math.floor(start.getTime() / 1_000)), nanos: end.nanos };
}

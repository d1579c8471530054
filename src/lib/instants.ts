/** A point in time: whole seconds since 1970-01-01T00:00:00Z (rounded down), and 0 to 999,999,999 nanoseconds after them. */
export interface Instant {
  readonly seconds: bigint;
  readonly nanos: number;
}

const OFFSET = '(?<offset>[Zz]|[+-]\\d\\d(?::?\\d\\d)?)?';
const EXTENDED = new RegExp(
  `^(?<year>\\d{4})-(?<month>\\d\\d)-(?<day>\\d\\d)[Tt ](?<hour>\\d\\d)(?::(?<minute>\\d\\d)(?::(?<second>\\d\\d)(?:[.,](?<fraction>\\d+))?)?)?${OFFSET}$`,
);
const BASIC = new RegExp(
  `^(?<year>\\d{4})(?<month>\\d\\d)(?<day>\\d\\d)[Tt ](?<hour>\\d\\d)(?:(?<minute>\\d\\d)(?:(?<second>\\d\\d)(?:[.,](?<fraction>\\d+))?)?)?${OFFSET}$`,
);
const DAY_SECONDS = 86_400;

/**
 * Reads an ISO 8601 calendar date and time, `undefined` if it is none.
 * - Basic or extended, not mixed; `T`, `t` or one space between; years 0000 to 9999.
 * - Seconds, and minutes with them, may be left out (Java leaves zero seconds out); a fraction belongs to seconds, follows `.`
 *   or `,` and is cut at nine digits.
 * - Offset `Z`, `z`, `±hh`, `±hhmm`, `±hh:mm` up to 23:59; without one the time is UTC.
 * - `24:00:00` is the end of its day. A leap second, 23:59:60 UTC, is the second after it, as in POSIX.
 */
export function parseInstant(text: string): Instant | undefined {
  const parts = (EXTENDED.exec(text) ?? BASIC.exec(text))?.groups;
  if (parts === undefined) return undefined;
  const day = dayStart(Number(parts.year), Number(parts.month), Number(parts.day));
  const offset = offsetSeconds(parts.offset ?? 'Z');
  if (day === undefined || offset === undefined) return undefined;

  const [hour, minute, second] = [Number(parts.hour), Number(parts.minute ?? 0), Number(parts.second ?? 0)];
  const nanos = Number((parts.fraction ?? '').slice(0, 9).padEnd(9, '0'));
  const seconds = day + hour * 3_600 + minute * 60 + second - offset;
  if (hour > 24 || minute > 59 || second > 60) return undefined;
  if (hour === 24 && (minute > 0 || second > 0 || nanos > 0)) return undefined;
  if (second === 60 && seconds % DAY_SECONDS !== 0) return undefined;
  return { seconds: BigInt(seconds), nanos };
}

/** Negative when `a` is before `b`, 0 when they are one instant, positive when `a` is after `b`. */
export function compareInstants(a: Instant, b: Instant): number {
  if (a.seconds !== b.seconds) return a.seconds < b.seconds ? -1 : 1;
  return a.nanos - b.nanos;
}

/**
 * ISO 8601 in UTC with three digits of milliseconds, the rest cut: `2026-11-21T10:30:00.123Z`.
 * An offset may carry the first or last year over the edge of four digits; the year is then written `-000001` or `+010000`.
 */
export function instantToIsoMillis(instant: Instant): string {
  return new Date(Number(instant.seconds) * 1_000 + Math.floor(instant.nanos / 1_000_000)).toISOString();
}

/** Seconds since 1970 at which the day starts; `undefined` for a day that no calendar has. */
function dayStart(year: number, month: number, day: number): number | undefined {
  // Not Date.UTC, which takes the years 0 to 99 for 1900 to 1999.
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  return date.getUTCMonth() === month - 1 && date.getUTCDate() === day ? date.getTime() / 1_000 : undefined;
}

function offsetSeconds(offset: string): number | undefined {
  if (offset === 'Z' || offset === 'z') return 0;
  const hours = Number(offset.slice(1, 3));
  const minutes = Number(offset.slice(3).replace(':', ''));
  if (hours > 23 || minutes > 59) return undefined;
  return (offset.startsWith('-') ? -1 : 1) * (hours * 3_600 + minutes * 60);
}

/**
 * PostgreSQL's text of a `timestamptz` in UTC (`2026-11-21 11:46:56.945123+00`) as ISO 8601 with milliseconds.
 * Slices, since a list has hundreds of them: a `Date` would cost ten times as much.
 */
export function isoFromPg(text: string): string {
  const seconds = text.slice(0, 19);
  const millis = text.charAt(19) === '.' ? text.slice(20, 23).replace(/\D.*$/, '').padEnd(3, '0') : '000';
  return `${seconds.replace(' ', 'T')}.${millis}Z`;
}

/** The same for a column that can be null. */
export function isoFromPgOrNull(text: string | null): string | null {
  return text === null ? null : isoFromPg(text);
}

// 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z.
const FIRST_SECOND = -62_135_596_800n;
const LAST_SECOND = 253_402_300_799n;

/** An instant as a text that PostgreSQL reads, cut to the microsecond; outside the years 1 to 9999 the nearest in them. */
export function pgFromInstant({ seconds, nanos }: Instant): string {
  const within = seconds < FIRST_SECOND ? FIRST_SECOND : seconds > LAST_SECOND ? LAST_SECOND : seconds;
  const micros = String(Math.floor(nanos / 1_000)).padStart(6, '0');
  return `${new Date(Number(within) * 1_000).toISOString().slice(0, 19)}.${micros}Z`;
}

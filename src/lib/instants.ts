/**
 * A point in time: whole seconds since 1970-01-01T00:00:00Z, rounded down, and 0 to 999,999,999 nanoseconds after them.
 */
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
 * Parses an ISO 8601 calendar date and time; returns undefined for any other text.
 * - Basic or extended format, not mixed; `T`, `t` or one space as the separator; years 0000 to 9999.
 * - Seconds, or minutes and seconds, may be left out (Java leaves out zero seconds). A fraction needs seconds, follows
 *   `.` or `,` and is cut to nine digits.
 * - The offset is `Z`, `z`, `±hh`, `±hhmm` or `±hh:mm`, up to 23:59; without one the time is UTC.
 * - `24:00:00` is the end of the day. A leap second, 23:59:60 UTC, is read as the next second, as in POSIX.
 * - An instant that the offset carries out of the years 0000 to 9999 in UTC, which no output could show, is the first or
 *   last one within them: any offset is valid (docs/contract.md, 2.7-07).
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
  if (seconds < FIRST_SECOND) return { seconds: FIRST_SECOND, nanos: 0 };
  return seconds > LAST_SECOND ? { seconds: LAST_SECOND, nanos: 999_999_999 } : { seconds: BigInt(seconds), nanos };
}

/** Formats a time in ms since 1970 as ISO 8601 in UTC. */
export function iso(ms: number): string {
  return new Date(ms).toISOString();
}

/** Returns the instant of a time in ms since 1970. */
export function instantOfMs(ms: number): Instant {
  return { seconds: BigInt(Math.floor(ms / 1_000)), nanos: (((ms % 1_000) + 1_000) % 1_000) * 1_000_000 };
}

/**
 * Compares two instants. Returns a negative number if `a` is before `b`, 0 if they are equal, and a positive number if
 * `a` is after `b`.
 */
export function compareInstants(a: Instant, b: Instant): number {
  if (a.seconds !== b.seconds) return a.seconds < b.seconds ? -1 : 1;
  return a.nanos - b.nanos;
}

/** Formats an instant of the years 0000 to 9999 as ISO 8601 in UTC, cut to milliseconds: `2026-11-21T10:30:00.123Z`. */
export function instantToIsoMillis(instant: Instant): string {
  return new Date(Number(instant.seconds) * 1_000 + Math.floor(instant.nanos / 1_000_000)).toISOString();
}

/** Returns the start of a day in seconds since 1970; undefined for a date that does not exist. */
function dayStart(year: number, month: number, day: number): number | undefined {
  // Date.UTC is not used, since it reads the years 0 to 99 as 1900 to 1999.
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
 * Converts PostgreSQL's text of a `timestamptz` in UTC (`2026-11-21 11:46:56.945123+00`), or ISO 8601 in UTC, to ISO
 * 8601, cut to milliseconds. It slices the text, because a `Date` is ten times slower and lists have hundreds of them.
 */
export function isoFromPg(text: string): string {
  const seconds = text.slice(0, 19);
  const millis = text.charAt(19) === '.' ? text.slice(20, 23).replace(/\D.*$/, '').padEnd(3, '0') : '000';
  return `${seconds.replace(' ', 'T')}.${millis}Z`;
}

// 0000-01-01T00:00:00Z, 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z.
const FIRST_SECOND = -62_167_219_200n;
const FIRST_PG_SECOND = -62_135_596_800n;
const LAST_SECOND = 253_402_300_799n;

/**
 * Formats an instant for PostgreSQL, cut to microseconds. Instants outside the years 1 to 9999, which are all that it
 * reads in this form, become the nearest second within them.
 */
export function pgFromInstant({ seconds, nanos }: Instant): string {
  const within = seconds < FIRST_PG_SECOND ? FIRST_PG_SECOND : seconds > LAST_SECOND ? LAST_SECOND : seconds;
  const micros = String(Math.floor(nanos / 1_000)).padStart(6, '0');
  return `${new Date(Number(within) * 1_000).toISOString().slice(0, 19)}.${micros}Z`;
}

import type { Instant } from './iso-instant.ts';

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

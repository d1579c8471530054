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

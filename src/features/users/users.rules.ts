import type { Selectable } from 'kysely';
import { identifierKey, trimmed } from '../../lib/identifier-key.ts';
import { nfc } from '../../lib/spelling.ts';
import type { Tables } from '../../tables/tables.ts';

/** A user as read from the table; times are PostgreSQL's text in UTC, to the microsecond. */
export type UserRow = Selectable<Tables['users']>;

/** Returns an email in the form in which it is stored; empty if it has no visible character. */
export function emailOf(text: string): string {
  return identifierKey(text) && nfc(trimmed(text));
}

/** Returns an identifier as it was sent; undefined if it is blank, which counts as absent. */
export function present(text: string | undefined): string | undefined {
  return text === undefined || trimmed(text) === '' ? undefined : text;
}

import { hasForbiddenText } from '../lib/json.ts';

export const MAX_WALLET_LENGTH = 128;
/** What the unique indexes can hold of an email or an external id, in any script. */
export const MAX_IDENTIFIER_LENGTH = 512;

/** Why a user is not migrated (specification section 7.4). */
export type SkipReason =
  | 'missing_email_and_external_id'
  | 'duplicate_email'
  | 'duplicate_external_id'
  | 'duplicate_wallet';

/** What becomes of a row (specification section 2.9). */
export type RowOutcome =
  | { status: 'created' }
  | { status: 'skipped'; reason: SkipReason }
  | { status: 'failed'; reason: string };

/** What identifies a user to be. `emailKey` is the email as the database compares it. */
export interface Identity {
  emailKey: string | undefined;
  externalId: string | undefined;
  address: string;
}

/** Which of a row's identifiers a user of the node has already. */
export interface Taken {
  email: boolean;
  externalId: boolean;
  address: boolean;
}

/** A row as it is judged. `fault` is what keeps it from being stored, known before it is tried or found by trying. */
export interface JudgedRow {
  identity: Identity;
  taken: Taken;
  fault: string | undefined;
}

/** The members of a row that can keep it from being stored. */
interface RowText {
  wallet_address: string;
  email?: string | undefined;
  external_id?: string | undefined;
  name?: string | undefined;
  surname?: string | undefined;
}

/**
 * What becomes of each row of one request, in its order (specification section 7.5): an identifier is missing, the row
 * cannot be stored, its email, its external id, its wallet is taken, by a user of the node or by a row that was created
 * before it.
 */
export function outcomesOf(rows: readonly JudgedRow[]): RowOutcome[] {
  const created = { emails: new Set<string>(), externalIds: new Set<string>(), addresses: new Set<string>() };
  return rows.map(({ identity, taken, fault }) => {
    const { emailKey, externalId, address } = identity;
    if (emailKey === undefined && externalId === undefined) return skipped('missing_email_and_external_id');
    if (fault !== undefined) return { status: 'failed', reason: fault };
    if (taken.email || (emailKey !== undefined && created.emails.has(emailKey))) return skipped('duplicate_email');
    if (taken.externalId || (externalId !== undefined && created.externalIds.has(externalId))) {
      return skipped('duplicate_external_id');
    }
    if (taken.address || created.addresses.has(address)) return skipped('duplicate_wallet');
    if (emailKey !== undefined) created.emails.add(emailKey);
    if (externalId !== undefined) created.externalIds.add(externalId);
    created.addresses.add(address);
    return { status: 'created' };
  });
}

/** What of a row no table can hold, in words for its sender; undefined where there is nothing. */
export function faultOf(row: RowText): string | undefined {
  const texts = { email: row.email, external_id: row.external_id, name: row.name, surname: row.surname };
  for (const [name, text] of Object.entries(texts)) {
    if (text !== undefined && hasForbiddenText(text)) return `${name} contains U+0000 or a lone surrogate`;
  }
  for (const [name, text] of Object.entries({ email: row.email, external_id: row.external_id })) {
    if (text !== undefined && tooLong(text, MAX_IDENTIFIER_LENGTH)) {
      return `${name} has more than ${MAX_IDENTIFIER_LENGTH} characters`;
    }
  }
  if (tooLong(row.wallet_address, MAX_WALLET_LENGTH)) {
    return `wallet_address has more than ${MAX_WALLET_LENGTH} characters`;
  }
  return undefined;
}

/** Whether a text has more characters than `max`; a character beyond the basic plane is one. */
export function tooLong(text: string, max: number): boolean {
  return text.length > max && (text.length > 2 * max || Array.from(text).length > max);
}

/** Which identifier the database has refused, by the name of its unique index; undefined for any other refusal. */
export function takenByIndex(index: string | undefined): keyof Taken | undefined {
  switch (index) {
    case 'users_email':
      return 'email';
    case 'users_external_id':
      return 'externalId';
    case 'users_address':
      return 'address';
    default:
      return undefined;
  }
}

function skipped(reason: SkipReason): RowOutcome {
  return { status: 'skipped', reason };
}

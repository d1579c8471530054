import { TOPICS } from '../../events/bus/topics.ts';
import type { NewOutboxEvent } from '../../events/outbox/outbox.ts';
import { trimmed } from '../../lib/identifier-key.ts';
import { isLonger } from '../../lib/input.ts';
import { hasForbiddenText } from '../../lib/json.ts';
import { nfc } from '../../lib/spelling.ts';
import { MAX_LENGTHS } from '../../tables/text-lengths.ts';
import { emailOf, present, type UserRow } from '../users/users.rules.ts';
import { MAX_WALLET_LENGTH, type MigrateUserInput } from './migration.input.ts';

/** A reason for which a user is not migrated (docs/contract.md, 7.4). */
export type SkipReason =
  | 'missing_email_and_external_id'
  | 'duplicate_email'
  | 'duplicate_external_id'
  | 'duplicate_wallet';

/** The outcome of a row (docs/contract.md, 2.9-02). */
export type RowOutcome =
  | { status: 'created' }
  | { status: 'skipped'; reason: SkipReason }
  | { status: 'failed'; reason: string };

/** Whether another user of the tenant already has an identifier. */
type TakenIdentifiers = Record<'email' | 'externalId' | 'address', boolean>;

/**
 * A row with the facts that decide its outcome. `owners` are the ids of the users that have its identifiers. `fault` is
 * the reason why it cannot be stored, found by a check or by an attempt to insert it.
 */
export interface JudgedRow {
  identity: {
    emailKey: string | undefined;
    externalId: string | undefined;
    address: string;
  };
  taken: TakenIdentifiers;
  owners: readonly string[];
  fault: string | undefined;
}

/** The members of a row that are checked by `faultOf`. */
type RowText = Omit<MigrateUserInput, 'kyc_sent'>;

/**
 * Decides the outcomes of the rows of one request, in order (docs/contract.md, 7.5-02). The checks are, in this order:
 * an identifier is given; the row can be stored; its email, external id and wallet are not taken by a user of the
 * tenant or by a row created before it.
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

/**
 * Returns for each row the ids of the users that it created or matched: of the tenant, and of those that rows of the
 * same request created.
 */
export function notedUsersOf(rows: readonly JudgedRow[], createdIds: readonly (string | undefined)[]): string[][] {
  const keysOf = ({ identity: { emailKey, externalId, address } }: JudgedRow) => [
    ...(emailKey === undefined ? [] : [`email ${emailKey}`]),
    ...(externalId === undefined ? [] : [`external id ${externalId}`]),
    `address ${address}`,
  ];
  const created = new Map<string, string>();
  for (const [index, row] of rows.entries()) {
    const id = createdIds[index];
    if (id !== undefined) for (const key of keysOf(row)) created.set(key, id);
  }
  return rows.map((row) => [...new Set([...row.owners, ...keysOf(row).flatMap((key) => created.get(key) ?? [])])]);
}

/**
 * Matches what a spreadsheet writes in place of a value: a number of many digits that it has shortened, such as
 * 1.23457E+11, an error, such as #NAME?, and the signs of a column that was too narrow.
 */
export const SHORTENED = /^(?:\d(?:[.,]\d+)?[Ee]\+\d+|#+|#[A-Z][A-Z0-9/]+[!?]|#N\/A)$/;

/** Returns what is suspicious about a row that can be stored; undefined if nothing is. */
export function warningOf({ external_id: externalId }: { external_id: string | null }): string | undefined {
  if (!SHORTENED.test(externalId ?? '')) return undefined;
  return `external_id ${externalId} is what a spreadsheet shows in place of a value: format the column as text`;
}

/** The texts of a row with their greatest lengths, in the order in which they are checked. */
const CHECKED: readonly (readonly [keyof RowText, number])[] = [
  ...(['email', 'external_id', 'name', 'surname'] as const).map((name) => [name, MAX_LENGTHS.users[name]] as const),
  ['wallet_address', MAX_WALLET_LENGTH],
];

/** Returns why a row cannot be stored in any table, as a text for its sender; undefined when it can. */
export function faultOf(row: RowText): string | undefined {
  const forbidden = CHECKED.find(([name]) => hasForbiddenText(row[name] ?? ''));
  if (forbidden) return `${forbidden[0]} contains U+0000 or a lone surrogate`;
  const [name, max] = CHECKED.find(([text, most]) => isLonger(row[text] ?? '', most)) ?? [];
  return name && `${name} has more than ${max} characters`;
}

/** The identifier that is taken when a unique index is violated, by the name of the index. */
export const TAKEN_BY_INDEX: ReadonlyMap<string | undefined, keyof TakenIdentifiers> = new Map([
  ['users_email', 'email'],
  ['users_email_key', 'email'],
  ['users_external_id', 'externalId'],
  ['users_address', 'address'],
]);

function skipped(reason: SkipReason): RowOutcome {
  return { status: 'skipped', reason };
}

/** Returns a wallet address in the form in which it is stored and compared. */
export function addressOf(walletAddress: string): string {
  return trimmed(walletAddress).toLowerCase();
}

/**
 * Returns a row, as sent, with its email and names in the form in which they are stored, and without blank identifiers.
 */
export function normalRow(row: MigrateUserInput): MigrateUserInput {
  return {
    ...row,
    email: emailOf(row.email ?? '') || undefined,
    external_id: present(row.external_id),
    name: row.name && nfc(row.name),
    surname: row.surname && nfc(row.surname),
  };
}

/**
 * Builds the user to create from a row. `micros` sets the creation times of a request's rows a microsecond apart, so
 * that lists keep their order.
 */
export function newUserOf(
  row: MigrateUserInput,
  { id, nodeId, atMs, micros }: { id: string; nodeId: string; atMs: number; micros: number },
): UserRow {
  const at = new Date(atMs).toISOString();
  return {
    id,
    node_id: nodeId,
    external_id: row.external_id ?? null,
    name: row.name ?? '',
    surname: row.surname ?? '',
    email: row.email ?? '',
    email_clash: 0,
    address: addressOf(row.wallet_address),
    identity_number: '',
    kyc_verified: row.kyc_sent,
    kyc_token_sent: row.kyc_sent,
    kyc_token_sent_at: row.kyc_sent ? at : null,
    kyc_token_tx_hash: null,
    erased_at: null,
    erased_records: null,
    erased_responses: null,
    erased_by: null,
    erased_migrations: null,
    erased_seal: null,
    created_at: `${at.slice(0, -1)}${String(micros).padStart(3, '0')}Z`,
  };
}

/** The type of the event that requests a KYC token for a user. */
export const KYC_EVENT = 'user.kyc_token.requested';

/**
 * Builds the event for a user who was created without a KYC token (docs/contract.md, 6-02). It contains neither name
 * nor email.
 */
export function kycEventOf(
  user: UserRow,
  {
    id,
    correlationId,
    traceparent,
    occurredAtMs,
  }: {
    /** A UUID v7, used as the id of the event and of its outbox row. */
    id: string;
    correlationId: string;
    traceparent?: string | undefined;
    occurredAtMs: number;
  },
): NewOutboxEvent {
  const created_at = new Date(occurredAtMs).toISOString();
  const payload = {
    id,
    event: KYC_EVENT,
    user_id: user.id,
    node_id: user.node_id,
    wallet_address: user.address,
    external_id: user.external_id,
    occurred_at: created_at,
  };
  return {
    id,
    topic: TOPICS.kycToken,
    key: user.id,
    event_type: KYC_EVENT,
    payload: JSON.stringify(payload),
    correlation_id: correlationId,
    traceparent: traceparent ?? null,
    created_at,
  };
}

import { noteUsers } from '../../audit/noted-users.ts';
import { identifierKey } from '../../lib/identifier-key.ts';
import { isoFromPgOrNull } from '../../lib/instants.ts';
import { nfc } from '../../lib/spelling.ts';
import { containing } from '../../platform/database/conditions.ts';
import { keysetList } from '../../platform/database/keyset-list.ts';
import { emailOf, type UserRow } from './users.rules.ts';

/**
 * Returns a user as REST and the MCP tools show it, with the members in the documented order (docs/contract.md, 2.8-01)
 * and without the time of its migration. `kyc` is null for a user who is not verified and was sent no KYC token.
 */
export function userView(row: UserRow) {
  const { id, external_id, name, surname, email, address, identity_number, kyc_verified, kyc_token_sent } = row;
  const kyc = {
    is_verified: kyc_verified,
    token_sent: kyc_token_sent,
    token_sent_at: isoFromPgOrNull(row.kyc_token_sent_at),
    token_tx_hash: row.kyc_token_tx_hash,
  };
  const members = { id, external_id, name, surname, email, address, identity_number };
  return { ...members, kyc: kyc_token_sent || kyc_verified ? kyc : null };
}

/** A filter of a user list; an undefined member does not filter. */
export interface UserFilter {
  id?: string | undefined;
  /** Text that the name, surname, email, external id or wallet address must contain, ignoring case. */
  search?: string | undefined;
  kycVerified?: boolean | undefined;
}

/** The searched columns besides the email, which is compared by its key. */
const SPELLED = ['name', 'surname', 'external_id', 'address'] as const;

/** Returns the pattern for each column: the text in the form in which the column is stored or compared. */
function patternsOf(search: string): Partial<Record<'email' | (typeof SPELLED)[number], string>> {
  const name = containing(nfc(search));
  const email = containing(identifierKey(search) || search);
  const address = containing(emailOf(search) || search);
  return { name, surname: name, email, external_id: containing(search), address };
}

/** Reads the users of a tenant by keyset, oldest first. */
export class UserPages extends keysetList({
  rows: (k) => k.selectFrom('users').selectAll(),
  valuesOf: ({ search, ...otherFilters }: UserFilter) => ({
    ...otherFilters,
    ...(search !== undefined && patternsOf(search)),
  }),
  where: (eb, { id, kycVerified, ...patterns }) => [
    ...(id === undefined ? [] : [eb('id', '=', id)]),
    ...(kycVerified === undefined ? [] : [eb('kyc_verified', '=', kycVerified)]),
    ...(patterns.name === undefined
      ? []
      : [
          eb.or([
            eb(eb.fn('identifier_key', ['email']), 'like', patterns.email ?? ''),
            ...SPELLED.map((column) => eb(column, 'ilike', patterns[column] ?? '')),
          ]),
        ]),
  ],
  order: ['created_at', 'id'],
  onRows: (rows) => noteUsers(rows.map(({ id }) => id)),
}) {}

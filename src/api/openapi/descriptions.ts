import type { JsonSchema } from './operation.ts';

const SCOPE =
  'The permissions to request, separated by spaces; everything by default. Unknown names are ignored, and so is a list, or what tabs or line feeds separate.';

/** The descriptions of members, by the name of their schema, in addition to their types. */
const DESCRIPTIONS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  TokenResponse: {
    expires_in: 'The lifetime of the access token in seconds, not a point in time.',
    scope: 'The permissions, separated by spaces.',
    created_at: 'The time of issue, as a Unix timestamp in seconds.',
  },
  PasswordGrant: {
    username:
      'The login name of a supervisor. Letter case, composition, blanks around it and invisible characters do not count.',
    password: 'Normalised to NFC.',
    scope: SCOPE,
  },
  ClientCredentialsGrant: { scope: SCOPE },
  RefreshTokenGrant: { scope: SCOPE },
  TokenToManage: { token: 'An access token or a refresh token.' },
  Condition: {
    field: 'The field that is compared, such as `target.balance`.',
    op: 'The comparison operator. Every spelling is stored as its short form.',
    value: 'Stored exactly: at most 78 significant digits, and an exponent from -78 to 78.',
  },
  WalletRule: {
    auto_transfer_rule: 'Required if type is auto_transfer.',
    permissionless_transfer_limit_rule: 'Required if type is permissionless_transfer_limit.',
    sign_and_approve_rule: 'The approvals that are required; each member is optional.',
  },
  Notification: {
    id: 'The id that the chain processor gave the transaction.',
    type: 'A code whose meaning depends on the collection of the id. Unknown codes are stored.',
    status: '1 Started, 2 InProgress, 3 Done, 4 Error, 5 PendingReceipt.',
    transaction_hash: 'Empty until broadcast.',
    contract_address: 'Empty if there is none.',
    gas_used: '0 while pending.',
    error: 'Set if the status is 4.',
    created_at: 'ISO 8601 with any precision and any offset; UTC if there is none.',
    updated_at: 'ISO 8601 with any precision and any offset; UTC if there is none.',
  },
  MigrateUser: {
    wallet_address: 'Trimmed and stored in lower case.',
    email:
      'Required if external_id is absent or blank. Trimmed and normalised to NFC; unique within the tenant, where letter case and invisible characters do not count.',
    external_id: 'Required if email is absent or blank. Unique within the tenant, compared exactly.',
    name: 'Normalised to NFC.',
    surname: 'Normalised to NFC.',
    kyc_sent: 'If true, the user is marked as verified and no KYC token event is published.',
  },
  AccountPage: { per_page: 'The requested limit.', total: 'The total number of items over all pages.' },
  BulkResult: { total: 'success + skipped + failed.', results: 'In the order of the request.' },
  Health: { uptime: 'Seconds since the start.' },
  Issue: { path: 'The path of the member, such as `users[3].email`; empty for the whole body.' },
};

/**
 * Returns the schemas with the descriptions of their members added, by default of all that are described.
 * @throws Error for a description of a schema or member that does not exist.
 */
export function described<Schemas extends Record<string, JsonSchema>>(
  schemas: Schemas,
  names = Object.keys(DESCRIPTIONS),
): Schemas {
  // Cloned together, so that schemas which share a member still share it.
  const copies = structuredClone(schemas);
  for (const name of names) {
    for (const [member, description] of Object.entries(DESCRIPTIONS[name] ?? {})) {
      const schema = copies[name]?.properties?.[member];
      if (!schema) throw new Error(`${name}.${member} is described but does not exist`);
      schema.description = description;
    }
  }
  return copies;
}

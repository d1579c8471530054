import { MAX_SCOPE_LENGTH } from '../src/features/clients/client.input.ts';
import { MAX_WALLET_LENGTH } from '../src/features/user-migrations/migration.input.ts';
import { MAX_FIELD_LENGTH } from '../src/features/wallet-rules/wallet-rule.input.ts';
import { MAX_LENGTHS } from '../src/tables/text-lengths.ts';

/**
 * A text: its meaning, its names in the interfaces, and the treatment of longer ones. Undefined: listed with another
 * one.
 */
type About = readonly [what: string, names: string, longer: string] | undefined;
type Lengths = typeof MAX_LENGTHS;

const REFUSED = '400';
const ROW = '400; in a bulk request or a file, a `failed` row';
const CUT = 'cut to the maximum';

/** By table and column: a length without an entry does not compile. */
const ABOUT: { readonly [Table in keyof Lengths]: { readonly [Column in keyof Lengths[Table]]: About } } = {
  users: {
    email: ['email of a user', '`email`', ROW],
    external_id: ['external id of a user', '`external_id`, `externalId`', ROW],
    name: ['name of a user', '`name`', ROW],
    surname: ['surname of a user', '`surname`', ROW],
    // Some characters are two in lower case.
    address: undefined,
    erased_by: undefined,
  },
  wallet_rules: { name: ['name of a rule', '`name`', REFUSED] },
  wallet_rule_versions: {
    name: undefined,
    subject: ['who changed a rule, started a migration, or erased a user', '`sub` of the token', CUT],
    client_id: ['client by which a rule was changed', '`client_id` of the token', CUT],
    correlation_id: ['correlation id of the request, in bytes', '`X-Correlation-ID`', REFUSED],
    reason: [
      'reason for a change of a rule',
      '`reason` of `replaceWalletRule`, `setWalletRuleStatus` and `replace_wallet_rule`',
      REFUSED,
    ],
  },
  transaction_ids: { id: ['id of a transaction', '`id` of a notification, of `registerTransaction`', REFUSED] },
  clients: {
    name: ['name of a client', '`name` of `createClient`, `updateClient` and `patchClient`, `--name`', REFUSED],
    cert_fingerprint: ['fingerprint of a certificate', '`certFingerprint`, `--cert-fingerprint`', REFUSED],
  },
  supervisors: {
    username: ['username', '`username`, `--username`', '400; at the token endpoint 401, as for an unknown username'],
  },
  login_failures: { username: undefined },
  seen_attention: {
    note: ['note on what needs a decision', '`note` of `markSeen`', REFUSED],
    seen_by: undefined,
  },
  migrations: {
    created_by: undefined,
    file_name: ['name of a file of users', '`name` of `startUserMigration`', REFUSED],
  },
  migration_jobs: { correlation_id: undefined },
  revoked_tokens: { token_id: ['id of a revoked token', '`jti` of the token', 'replaced by its SHA-256'] },
};

const HEAD = `# Lengths of texts

Generated from \`src/tables/text-lengths.ts\` by \`npm run -s schema\`. These texts have a maximum length, the same on every interface, which the database
checks too. Lengths are in Unicode code points, after the text was [trimmed and normalised](migrating.md#migration-of-users). A longer text is a 400 that names
the member, a \`ValidationError\` in GraphQL, and an error result of an MCP tool. Other members of notifications are limited only by the size of the body;
reference topics have no limits, except that the symbol of a currency has at most 640 characters: a longer one does not fit its index, and is a dead letter.

| text | names | maximum | longer |
|---|---|---|---|
`;

/** The text of docs/lengths.md. */
export function lengthsPage(): string {
  const maxima: Record<string, Record<string, number>> = MAX_LENGTHS;
  const lines = Object.entries<Record<string, About>>(ABOUT).flatMap(([table, columns]) =>
    Object.entries(columns).map(([column, about]) => line(about, maxima[table]?.[column])),
  );
  const others = [
    line(['wallet address of a user', '`wallet_address`, `walletAddress`', ROW], MAX_WALLET_LENGTH),
    line(['field of a condition of a rule', '`field`', REFUSED], MAX_FIELD_LENGTH),
    line(['scope of a client', '`scopes`, `--scopes`', REFUSED], MAX_SCOPE_LENGTH),
  ];
  return HEAD + [...lines, ...others].join('');
}

function line(about: About, max = 0): string {
  if (!about) return '';
  const [what, names, longer] = about;
  return `| ${what} | ${names} | ${max.toLocaleString('en')} | ${longer} |\n`;
}

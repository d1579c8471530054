import { Migration } from '@mikro-orm/migrations';

/** The greatest lengths of texts in characters, by table and column. */
const LENGTHS: Record<string, Record<string, number>> = {
  clients: { name: 255, cert_fingerprint: 383 },
  login_failures: { username: 510 },
  migration_jobs: { correlation_id: 1_024 },
  migrations: { created_by: 1_024 },
  revoked_tokens: { token_id: 255 },
  supervisors: { username: 255 },
  transaction_ids: { id: 128 },
  users: { email: 512, external_id: 512, name: 1_024, surname: 1_024, address: 256 },
  wallet_rule_versions: { name: 1_024, subject: 1_024, client_id: 1_024, correlation_id: 1_024 },
  wallet_rules: { name: 1_024 },
};

/** The greatest sizes of lists and JSON as text, in bytes. */
const SIZES: Record<string, Record<string, number>> = {
  clients: { scopes: 262_144, allowed_ips: 65_536 },
  wallet_rule_versions: { auto_transfer_rule: 524_288 },
  wallet_rules: { auto_transfer_rule: 524_288 },
};

/**
 * The greatest lengths of the texts that callers store. The checks are not validated: the release before limits no name,
 * so its rows may be longer. They stay as they are, and the migration reads no table and holds its locks briefly. Each
 * write from now on is checked, one of that release too.
 *
 * Two columns of `migration_rows` have no check in this release: the one before stores the email and the external id of
 * a failed row as they were sent, however long.
 *
 * Each table is altered in a transaction of its own: services lock these tables in several orders, so one that locks all of
 * them would meet a request in a deadlock, and the request could be the one that fails.
 */
export class Migration20261203TextLengths extends Migration {
  override isTransactional(): boolean {
    return false;
  }

  override up(): void {
    for (const table of Object.keys(LENGTHS)) {
      const checks = [
        ...checksOf(LENGTHS[table], (column) => [`${table}_${column}_length`, `char_length(${column})`]),
        ...checksOf(SIZES[table], (column) => [`${table}_${column}_size`, `octet_length(${column}::text)`]),
      ];
      this.addSql(`alter table ${table} ${checks.join(', ')}`);
    }
  }
}

/** Returns the clauses that add checks; they replace those of a run that was cut off. */
function checksOf(
  limits: Record<string, number> = {},
  checkOf: (column: string) => [name: string, measure: string],
): string[] {
  return Object.entries(limits).flatMap(([column, max]) => {
    const [name, measure] = checkOf(column);
    return [`drop constraint if exists ${name}`, `add constraint ${name} check (${measure} <= ${max}) not valid`];
  });
}

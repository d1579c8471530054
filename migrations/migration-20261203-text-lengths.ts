import { Migration } from '@mikro-orm/migrations';

/**
 * The greatest lengths of texts in characters, by table and column. The tables are in the order in which requests lock them:
 * a request that meets this migration in a deadlock could be the one that fails.
 */
const LENGTHS: Record<string, Record<string, number>> = {
  users: { email: 512, external_id: 512, name: 1_024, surname: 1_024, address: 256 },
  migrations: { created_by: 1_024 },
  migration_jobs: { correlation_id: 1_024 },
  wallet_rules: { name: 1_024 },
  wallet_rule_versions: { name: 1_024, subject: 1_024, client_id: 1_024, correlation_id: 1_024 },
  clients: { name: 255, cert_fingerprint: 383 },
  supervisors: { username: 255 },
  login_failures: { username: 510 },
  revoked_tokens: { token_id: 255 },
  transaction_ids: { id: 128 },
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
 */
export class Migration20261203TextLengths extends Migration {
  override up(): void {
    this.#check(LENGTHS, (column) => `char_length(${column})`, 'length');
    this.#check(SIZES, (column) => `octet_length(${column}::text)`, 'size');
  }

  #check(limits: typeof LENGTHS, measure: (column: string) => string, suffix: string): void {
    for (const [table, columns] of Object.entries(limits)) {
      for (const [column, max] of Object.entries(columns)) {
        this.addSql(`
          alter table ${table} add constraint ${table}_${column}_${suffix}
            check (${measure(column)} <= ${max}) not valid`);
      }
    }
  }
}

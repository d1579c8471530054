import { Migration } from '@mikro-orm/migrations';

/** What the indexes of `migration-20261127-version-0-2` replace. */
const REPLACED = ['transactions_by_hash', 'transactions_page'];
const INDEX = 'transactions_by_hash_start';

/**
 * The index of hashes has their beginning: a hash of any length is valid, and one too long for an index stopped its topic.
 * While it runs, other processes write. It runs again after it was interrupted: an index that is invalid then is built anew.
 */
export class Migration20261130040000HashStart extends Migration {
  override isTransactional(): boolean {
    return false;
  }

  override async up(): Promise<void> {
    const [state] = await this.execute(
      `select indisvalid as valid from pg_index where indexrelid = to_regclass('${INDEX}')`,
    );
    if (state?.valid === false) await this.execute(`drop index concurrently ${INDEX}`);
    await this.execute(`create index concurrently if not exists ${INDEX}
      on transactions (node_id, left(transaction_hash, 512)) where transaction_hash <> ''`);
    for (const index of REPLACED) await this.execute(`drop index concurrently if exists ${index}`);
  }
}

import { Migration } from '@mikro-orm/migrations';

/** The index of hashes has their beginning: a hash of any length is valid, and one too long for an index stopped its topic. */
export class Migration20261130040000HashStart extends Migration {
  override up(): void {
    this.addSql(`create index transactions_by_hash_start on transactions (node_id, left(transaction_hash, 512))
      where transaction_hash <> ''`);
    this.addSql('drop index transactions_by_hash');
  }
}

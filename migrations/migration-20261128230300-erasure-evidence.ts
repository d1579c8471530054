import { Migration } from '@mikro-orm/migrations';

/** What a receipt of an erasure proves: the migrations whose rows were erased, and the seal of the audit. And the names of files. */
export class Migration20261128230300ErasureEvidence extends Migration {
  override up(): void {
    this.addSql('alter table users add erased_migrations uuid[], add erased_seal text');
    this.addSql(`alter table migrations add file_name text,
      add constraint migrations_file_name_length check (char_length(file_name) <= 255) not valid`);
  }
}

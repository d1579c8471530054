import { Migration } from '@mikro-orm/migrations';

/** What the failed rows of a file take so far: a migration ends where that is too much for what was read of it. */
export class Migration20261129FailedBytes extends Migration {
  override up(): void {
    this.addSql('alter table migration_jobs add column failed_bytes bigint not null default 0');
  }
}

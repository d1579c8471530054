import { Migration } from '@mikro-orm/migrations';

/** An index that counts the stored chunks of a node's files: with each chunk of an upload, they are compared with a limit. */
export class Migration20261206WaitingFiles extends Migration {
  override up(): void {
    this.addSql('create index migration_files_node on migration_files (node_id)');
  }
}

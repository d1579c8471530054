import { Migration } from '@mikro-orm/migrations';

/** From when on a client's own tokens are good: those before carry scopes that were taken away, or have no end. */
export class Migration20261128OwnTokens extends Migration {
  override up(): void {
    this.addSql('alter table clients add column own_tokens_from timestamptz(6)');
  }
}

import { Migration } from '@mikro-orm/migrations';
import { identifierKeySql } from '../src/lib/identifier-key.ts';

/**
 * Emails and usernames are compared by keys. The columns tell rows of 0.1.0 with one key apart. Failed logins are counted
 * under the key from now on: a lockout that lasts goes on.
 */
export class Migration20261128IdentifierKeys extends Migration {
  override up(): void {
    this.addSql(identifierKeySql('identifier_key'));
    this.addSql('alter table users add email_clash integer not null default 0');
    this.addSql('alter table supervisors add username_clash integer not null default 0');
    this.addSql(
      'update login_failures set username = identifier_key(username) where username <> identifier_key(username)',
    );
  }
}

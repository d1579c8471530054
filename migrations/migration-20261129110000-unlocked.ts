import { Migration } from '@mikro-orm/migrations';

const KEPT = ['username', 'role', 'status', '-password_hash', 'unlocked_at'];

/** The time at which a supervisor was unlocked, which the activity of the supervisor keeps as a change. */
export class Migration20261129110000Unlocked extends Migration {
  override up(): void {
    const columns = KEPT.map((name) => name.replace('-', ''));
    this.addSql('alter table supervisors add unlocked_at timestamptz(6)');
    this.addSql('drop trigger keep_activity on supervisors');
    this.addSql(`create trigger keep_activity after insert or update of ${columns.join(', ')} on supervisors for each row
      execute function keep_activity(${KEPT.map((name) => `'${name}'`).join(', ')})`);
  }
}

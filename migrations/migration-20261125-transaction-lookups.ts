import { Migration } from '@mikro-orm/migrations';

const STATEMENTS = [
  `create table transaction_lookups (
    id text primary key, attempts integer not null default 0, due_at timestamptz(6) not null default '-infinity')`,
  'create index transaction_lookups_turn on transaction_lookups (due_at)',
  `insert into transaction_lookups (id)
    select distinct id from parked_notifications where id not in (select id from transactions)`,
];

/** The ids that notifications wait for and nobody has registered; one that was never asked for is due at once. */
export class Migration20261125TransactionLookups extends Migration {
  override up(): void {
    for (const statement of STATEMENTS) this.addSql(statement);
  }
}

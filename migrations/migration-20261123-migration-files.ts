import { Migration } from '@mikro-orm/migrations';

const STATEMENTS = [
  `create table migration_files (
    migration_id uuid not null, seq integer not null, node_id uuid not null references nodes, bytes bytea not null,
    created_at timestamptz(6) not null, primary key (migration_id, seq))`,
  'alter table migration_files alter column bytes set storage external',
  `create table migration_jobs (
    migration_id uuid primary key, node_id uuid not null, columns text not null, byte_position bigint not null,
    next_index integer not null, correlation_id text not null, attempts integer not null default 0,
    lease_owner uuid, lease_until timestamptz(6) not null,
    foreign key (node_id, migration_id) references migrations (node_id, id))`,
  'create index migration_jobs_turn on migration_jobs (lease_until)',
];

/**
 * Files of users to migrate, in chunks of one size that come before their migration, and how far each is. Both go in the
 * transaction that ends the migration. What is imported once need not be compressed.
 */
export class Migration20261123MigrationFiles extends Migration {
  override up(): void {
    for (const statement of STATEMENTS) this.addSql(statement);
  }
}

import { Migration } from '@mikro-orm/migrations';

const STATEMENTS = [
  'create index users_page on users (node_id, created_at, id)',
  `create table migrations (
    id uuid primary key, node_id uuid not null references nodes,
    status text not null check (status in ('running', 'done', 'cancelled', 'failed')),
    total integer not null default 0, success integer not null default 0, skipped integer not null default 0,
    failed integer not null default 0, created_by text not null, created_at timestamptz(6) not null,
    finished_at timestamptz(6), unique (node_id, id))`,
  'create index migrations_page on migrations (node_id, created_at, id)',
  `create table migration_rows (
    migration_id uuid not null, index integer not null, node_id uuid not null, email text, external_id text,
    user_id uuid, status text not null check (status in ('created', 'skipped', 'failed')), reason text,
    primary key (migration_id, index), foreign key (node_id, migration_id) references migrations (node_id, id))`,
  `create table outbox (
    id uuid primary key, seq bigint generated always as identity unique, topic text not null, key text not null,
    event_type text not null, payload text not null, correlation_id text not null, created_at timestamptz(6) not null)`,
  `create table idempotent_answers (
    node_id uuid not null references nodes, scope bytea not null, body_sha256 bytea not null,
    status integer not null, headers jsonb not null, body text, created_at timestamptz(6) not null,
    primary key (node_id, scope))`,
  'create index idempotent_answers_end on idempotent_answers (created_at)',
];

/**
 * Migrations of users, the events of what was written with them, and the answers that were given under a key. `scope` is
 * the SHA-256 of who called what under which key; the rows of `outbox` go once they have been relayed.
 */
export class Migration20261122Users extends Migration {
  override up(): void {
    for (const statement of STATEMENTS) this.addSql(statement);
  }
}

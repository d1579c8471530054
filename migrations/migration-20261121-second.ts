import { Migration } from '@mikro-orm/migrations';

const STATEMENTS = [
  'alter table clients add column tokens_from timestamptz(6)',
  `create table client_quotas (
    client_id uuid not null, node_id uuid not null, month text not null, used bigint not null,
    primary key (client_id, month), foreign key (node_id, client_id) references clients (node_id, id))`,
  `create table spent_refresh_tokens (
    client_id uuid not null, digest bytea not null, node_id uuid not null, spent_at timestamptz(6) not null,
    expires_at timestamptz(6), primary key (client_id, digest),
    foreign key (node_id, client_id) references clients (node_id, id))`,
  'create index spent_refresh_tokens_end on spent_refresh_tokens (expires_at) where expires_at is not null',
  `create table revoked_tokens (
    client_id uuid not null, token_id text not null, node_id uuid not null, expires_at timestamptz(6),
    primary key (client_id, token_id), foreign key (node_id, client_id) references clients (node_id, id))`,
  'create index revoked_tokens_end on revoked_tokens (expires_at) where expires_at is not null',
  `create table login_failures (
    id uuid primary key, node_id uuid not null references nodes, username text not null,
    failed_at timestamptz(6) not null)`,
  'create index login_failures_of_username on login_failures (node_id, username, failed_at)',
  'create index login_failures_end on login_failures (failed_at)',
  `create table access_changes (
    seq bigint generated always as identity primary key,
    kind text not null check (kind in ('client', 'session', 'token')), node_id uuid not null references nodes,
    subject text not null, item text, created_at timestamptz(6) not null default now())`,
  'create index access_changes_end on access_changes (created_at)',
  'create index sessions_of_client on sessions (node_id, client_id) where revoked_at is null',
];

/**
 * Limits, refresh reuse, revocation and lockout. `access_changes` tells other replicas what has ended: `subject` and
 * `item` are a client's id and nothing, a supervisor's id and a session's, a client's id and a token's (or family's).
 */
export class Migration20261121Second extends Migration {
  override up(): void {
    for (const statement of STATEMENTS) this.addSql(statement);
  }
}

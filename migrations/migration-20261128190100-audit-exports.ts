import { Migration } from '@mikro-orm/migrations';

const STATEMENTS = [
  `create table audit_exports (
    id uuid primary key, node_id uuid not null references nodes, status text not null, asked jsonb not null, filter jsonb not null,
    requested_by text not null, created_at timestamptz(6) not null, finished_at timestamptz(6), expires_at timestamptz(6),
    records integer not null default 0, total integer, bytes integer not null default 0, problems integer, reason text,
    download_key uuid, state jsonb, lease_owner uuid, lease_until timestamptz(6), unique (node_id, id),
    constraint audit_exports_status_check check (status in ('waiting', 'running', 'ready', 'failed', 'expired')))`,
  'create index audit_exports_page on audit_exports (node_id, created_at, id)',
  `create unique index audit_exports_open on audit_exports (node_id) where status in ('waiting', 'running')`,
  `create table audit_export_chunks (
    export_id uuid not null, seq integer not null, node_id uuid not null, file text not null, bytes bytea not null,
    primary key (export_id, seq),
    foreign key (node_id, export_id) references audit_exports (node_id, id) on delete cascade)`,
  'create index audit_export_chunks_file on audit_export_chunks (export_id, file, seq)',
];

/** Exports of audit records that tenants have asked for: how far each is, and its files in chunks. */
export class Migration20261128190100AuditExports extends Migration {
  override up(): void {
    for (const statement of STATEMENTS) this.addSql(statement);
  }
}

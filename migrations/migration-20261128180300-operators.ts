import { Migration } from '@mikro-orm/migrations';

const STATEMENTS = [
  `create table processes (
    id uuid primary key, role text not null, version text not null, host text not null, state jsonb not null,
    started_at timestamptz(6) not null, seen_at timestamptz(6) not null default now())`,
  `create table dead_letter_decisions (
    topic text not null, partition integer not null, "offset" bigint not null, decision text not null,
    reason text, decided_by text not null, decided_at timestamptz(6) not null default now(),
    primary key (topic, partition, "offset"))`,
  `create table audit_verifications (
    at timestamptz(6) primary key default now(), seal bigint not null, problems integer not null)`,
  // Records arrive in the order of their positions, so that a summary of each range of blocks is enough, and costs a write nothing.
  `create index audit_records_position on audit_records using brin (coalesce(position, 0), at) with (autosummarize = on)`,
  // Whoever inserts records shows, until its transaction ends, the last position before its own: a reader of all records
  // after a position stops there. The lock conflicts with no other.
  `create function show_audit_position() returns trigger language plpgsql as $$
    begin
      perform pg_advisory_xact_lock_shared(4273009, (coalesce(pg_sequence_last_value('audit_positions'), 0) & 2147483647)::integer);
      return null;
    end $$`,
  `do $$
    begin
      execute format('alter function show_audit_position() set search_path = %I, pg_temp', current_schema());
      revoke execute on function show_audit_position() from public;
    end $$`,
  `create trigger show_audit_position before insert or update or delete on audit_records
    for each statement execute function show_audit_position()`,
];

export class Migration20261128180300Operators extends Migration {
  override up(): void {
    for (const statement of STATEMENTS) this.addSql(statement);
  }
}

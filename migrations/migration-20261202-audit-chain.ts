import { Migration } from '@mikro-orm/migrations';

/**
 * The place of an audit record in the chain of its process, the seals by which processes sign what they know of chains,
 * and the functions that alone change records. Who runs them needs no right on the table itself.
 */
export class Migration20261202AuditChain extends Migration {
  override up(): void {
    this.addSql(`
      alter table audit_records
        add chain_id uuid, add chain_index bigint, add previous_hash bytea, add hash bytea, add salts bytea,
        add erased jsonb`);
    this.addSql(`
      create index audit_records_chain on audit_records (chain_id, chain_index) where chain_id is not null`);
    this.addSql(`
      create table audit_seals (
        position bigint primary key, chain_id uuid, kind text not null, body text not null, signature bytea)`);
    this.addSql('create index audit_seals_of_chain on audit_seals (chain_id, position) where chain_id is not null');
    // Without a seal that comes next nothing is done: what changes records leaves one, and nobody can take a later place.
    this.addSql(`
      create function audit_seal(seal json) returns void language plpgsql security definer as $$
      declare
        given audit_seals := json_populate_record(null::audit_seals, seal);
        next bigint := (select coalesce(max(position), 0) + 1 from audit_seals);
      begin
        if given.position is distinct from next or given.body::json->>'position' is distinct from next::text then
          raise exception 'this is no seal at the position %', next;
        end if;
        insert into audit_seals select given.*;
      end $$`);
    this.addSql(`
      create function audit_erase(erased json, seal json) returns void
      language sql security definer as $$
        update audit_records a set
          path = e.path, query = e.query, correlation_id = e.correlation_id, headers = e.headers,
          request_body = e.request_body, response_body = e.response_body, salts = e.salts, erased = e.erased
        from json_populate_recordset(null::audit_records, audit_erase.erased) e where a.at = e.at and a.id = e.id;
        select audit_seal(seal)
      $$`);
    this.addSql(`
      create function audit_delete(last_at timestamptz, last_id uuid, seal json) returns void
      language sql security definer as $$
        delete from audit_records where (at, id) <= (last_at, last_id);
        select audit_seal(seal)
      $$`);
    this.addSql(`
      create function audit_drop_month(name text, seal json) returns void
      language plpgsql security definer as $$
      begin
        if not exists (
          select from pg_partition_tree('audit_records')
          where relid = to_regclass(name) and level = 1 and name ~ '^audit_records_[0-9]{4}_[0-9]{2}$'
        ) then
          raise exception '% is no month of audit_records', name;
        end if;
        execute format('drop table %I', name);
        perform audit_seal(seal);
      end $$`);
    // While the lock lasts, no record of the month can enter the default partition, which may hold some already.
    this.addSql(`
      create function audit_make_month(month date) returns void
      language plpgsql security definer as $$
      declare
        name text := to_char(month, '"audit_records_"YYYY_MM');
        first timestamptz := date_trunc('month', month::timestamp) at time zone 'UTC';
        next timestamptz := (date_trunc('month', month::timestamp) + interval '1 month') at time zone 'UTC';
      begin
        if to_regclass(name) is not null then
          return;
        end if;
        lock table audit_records_default in access exclusive mode;
        execute format('create table %I (like audit_records including all)', name);
        execute format(
          'with moved as (delete from audit_records_default where at >= %L and at < %L returning *)
           insert into %I select * from moved', first, next, name);
        execute format('alter table audit_records attach partition %I for values from (%L) to (%L)', name, first, next);
      end $$`);
    // Without the second, whoever calls them could put a temporary table in the place of a real one.
    this.addSql(`
      do $$
      declare name text;
      begin
        foreach name in array array[
          'audit_seal(json)', 'audit_erase(json, json)', 'audit_delete(timestamptz, uuid, json)',
          'audit_drop_month(text, json)', 'audit_make_month(date)']
        loop
          execute format('alter function %s set search_path = %I, pg_temp', name, current_schema());
          execute format('revoke execute on function %s from public', name);
        end loop;
      end $$`);
  }
}

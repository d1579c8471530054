import { Migration } from '@mikro-orm/migrations';

const VERSIONED = ['nodes', 'chains', 'networks', 'network_currencies', 'accounts', 'wallets', 'assets'];

const STATEMENTS = [
  ...VERSIONED.map((table) => `alter table ${table} add column version bigint not null default 0`),
  `create table reference_tombstones (
    kind text not null, id uuid not null, version bigint not null, log_offset bigint, log_time_ms bigint,
    primary key (kind, id))`,
  `create table reference_parked (
    kind text not null, id uuid not null, version bigint not null, value jsonb not null, waits_for_kind text,
    waits_for_id uuid, reason text, primary key (kind, id))`,
  `create index reference_parked_waiting on reference_parked (waits_for_kind, waits_for_id)
    where waits_for_id is not null`,
  'create index wallets_of_chain on wallets (chain_id)',
  'create index networks_of_chain on networks (chain_id)',
  'create index network_currencies_of_network on network_currencies (network_id)',
  'create index wallet_networks_of_network on wallet_networks (network_id)',
  'create index assets_of_network on assets (network_id)',
  'create index assets_page on assets (node_id, created_at, id)',
  // One by one, each in a block of its own: what is still referred to stays and hinders no other.
  `create function delete_unreferenced(table_name text, ids uuid[]) returns void language plpgsql as $$
    declare
      one uuid;
    begin
      foreach one in array ids loop
        begin
          if table_name = 'wallets' then
            delete from wallet_networks where wallet_id = one;
          end if;
          execute format('delete from %I where id = $1', table_name) using one;
        exception when foreign_key_violation then
          null;
        end;
      end loop;
    end $$`,
];

/**
 * Reference data: the version of each row, what a tombstone has deleted, and what waits for its parent. A row that was
 * there before has version 0, which every later version outranks.
 */
export class Migration20261122Reference extends Migration {
  override up(): void {
    for (const statement of STATEMENTS) this.addSql(statement);
  }
}

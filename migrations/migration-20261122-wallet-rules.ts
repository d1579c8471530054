import { Migration } from '@mikro-orm/migrations';

const STATEMENTS = [
  `create table wallet_rules (
    id uuid primary key, node_id uuid not null, wallet_id uuid not null, name text not null,
    type text not null check (type in ('auto_transfer', 'permissionless_transfer_limit')),
    network_id uuid not null, network_currency_id uuid not null, priority smallint, auto_transfer_rule jsonb,
    sign_and_approve_rule jsonb, permissionless_transfer_limit_rule jsonb,
    status text not null default 'active' check (status in ('active', 'disabled')),
    version integer not null default 1, created_at timestamptz(6) not null, updated_at timestamptz(6) not null,
    unique (node_id, id),
    foreign key (node_id, wallet_id) references wallets (node_id, id) on delete cascade)`,
  'create index wallet_rules_page on wallet_rules (node_id, wallet_id, created_at, id)',
  'create index wallets_page on wallets (node_id, created_at, id)',
  'create index wallet_networks_page on wallet_networks (node_id, wallet_id, created_at, network_id)',
  'alter table networks add column created_at timestamptz(6) not null default now()',
  'create index networks_page on networks (created_at, id)',
];

/** Wallet rules, and what the pages of wallets and networks are read by. A rule goes with its wallet. */
export class Migration20261122WalletRules extends Migration {
  override up(): void {
    for (const statement of STATEMENTS) this.addSql(statement);
  }
}

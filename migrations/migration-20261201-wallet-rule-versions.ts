import { Migration } from '@mikro-orm/migrations';

const CONTENT = [
  ...['wallet_id', 'name', 'type', 'network_id', 'network_currency_id', 'priority', 'auto_transfer_rule'],
  ...['sign_and_approve_rule', 'permissionless_transfer_limit_rule', 'status'],
];
const COLUMNS = ['node_id', 'rule_id', 'version', ...CONTENT, 'at', 'deleted'].join(', ');

/** What a version takes from the row of its rule, in the order of `COLUMNS`. */
function versionOf(rule: string): string {
  return ['node_id', 'id', 'version', ...CONTENT, 'updated_at'].map((column) => `${rule}.${column}`).join(', ');
}

const STATEMENTS = [
  `create table wallet_rule_versions (
    node_id uuid not null, rule_id uuid not null, version integer not null, wallet_id uuid not null,
    name text not null, type text not null, network_id uuid not null, network_currency_id uuid not null,
    priority smallint, auto_transfer_rule jsonb, sign_and_approve_rule jsonb, permissionless_transfer_limit_rule jsonb,
    status text not null, deleted boolean not null default false, at timestamptz(6) not null,
    subject text, client_id text, correlation_id text, primary key (node_id, rule_id, version))`,
  `create function keep_wallet_rule_version() returns trigger language plpgsql as $$
    declare
      rule wallet_rules := case tg_op when 'DELETE' then old else new end;
    begin
      if tg_op = 'DELETE' then
        rule.version := old.version + 1;
        rule.updated_at := now();
      elsif tg_op = 'UPDATE' and (new.version <> old.version + 1 or new.node_id <> old.node_id or new.id <> old.id) then
        raise check_violation using message = 'a change of a wallet rule raises its version by 1';
      end if;
      insert into wallet_rule_versions (${COLUMNS}) values (${versionOf('rule')}, tg_op = 'DELETE');
      return null;
    end $$`,
  // It locks the table against writes until the migration commits, so that no write escapes both it and the copy below.
  `create trigger keep_wallet_rule_version after insert or delete on wallet_rules
    for each row execute function keep_wallet_rule_version()`,
  `create trigger keep_changed_wallet_rule_version after update on wallet_rules
    for each row when (old.* is distinct from new.*) execute function keep_wallet_rule_version()`,
  `insert into wallet_rule_versions (${COLUMNS}) select ${versionOf('r')}, false from wallet_rules r`,
];

/**
 * Every version of a wallet rule, kept by the database itself: whatever writes a rule, one version comes of it. Who
 * wrote it is added by the writer in the same transaction, and unknown where it is not.
 */
export class Migration20261201WalletRuleVersions extends Migration {
  override up(): void {
    for (const statement of STATEMENTS) this.addSql(statement);
  }
}

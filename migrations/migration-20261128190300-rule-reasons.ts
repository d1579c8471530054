import { Migration } from '@mikro-orm/migrations';

const STATEMENTS = [
  `alter table wallet_rule_versions add reason text,
    add constraint wallet_rule_versions_reason_length check (char_length(reason) <= 1024) not valid`,
  // As before, and with the reason that the writer of the rule gave.
  `create or replace function keep_wallet_rule_version() returns trigger language plpgsql security definer as $$
    declare
      rule wallet_rules := case tg_op when 'DELETE' then old else new end;
      author jsonb := nullif(current_setting('portcullis.rule_author', true), '')::jsonb;
    begin
      if tg_op = 'DELETE' then
        rule.version := old.version + 1;
        rule.updated_at := now();
      elsif tg_op = 'UPDATE' and (new.version <> old.version + 1 or new.node_id <> old.node_id or new.id <> old.id) then
        raise check_violation using message = 'a change of a wallet rule raises its version by 1';
      end if;
      insert into wallet_rule_versions (
        node_id, rule_id, version, wallet_id, name, type, network_id, network_currency_id, priority, auto_transfer_rule,
        sign_and_approve_rule, permissionless_transfer_limit_rule, status, at, deleted, subject, client_id, correlation_id,
        reason)
      values (
        rule.node_id, rule.id, rule.version, rule.wallet_id, rule.name, rule.type, rule.network_id,
        rule.network_currency_id, rule.priority, rule.auto_transfer_rule, rule.sign_and_approve_rule,
        rule.permissionless_transfer_limit_rule, rule.status, rule.updated_at, tg_op = 'DELETE', author->>'subject',
        author->>'client_id', author->>'correlation_id', author->>'reason');
      return null;
    end $$`,
  // A function that is replaced loses its settings.
  `do $$
    begin
      execute format('alter function keep_wallet_rule_version() set search_path = %I, pg_temp', current_schema());
    end $$`,
  `alter function keep_wallet_rule_version() set timezone = 'UTC'`,
];

export class Migration20261128190300RuleReasons extends Migration {
  override up(): void {
    for (const statement of STATEMENTS) this.addSql(statement);
  }
}

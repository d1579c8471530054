import { Migration } from '@mikro-orm/migrations';

/** The columns whose changes are kept, by table; of those that begin with `-` without values: secrets and personal data. */
const KEPT = {
  clients: [
    ...[
      'name',
      'grant_types',
      'scopes',
      'token_expiry_enabled',
      'token_expiry_duration',
      'allowed_ips',
      'require_certificate',
    ],
    ...['cert_fingerprint', 'requests_per_second', 'requests_per_minute', 'requests_per_hour', 'monthly_limit'],
    ...['refresh_reuse_detection', 'is_console', 'status'],
  ],
  supervisors: ['username', 'role', 'status', '-password_hash'],
  users: ['-email', 'erased_at'],
};

const trigger = (table: string, when: string, columns: readonly string[], condition = '') =>
  `create trigger keep_activity after ${when} on ${table} for each row ${condition}
    execute function keep_activity(${columns.map((name) => `'${name}'`).join(', ')})`;
const updateOf = (columns: readonly string[]) => `update of ${columns.map((name) => name.replace('-', '')).join(', ')}`;

const STATEMENTS = [
  `create table activity (
    id uuid primary key default gen_random_uuid(), node_id uuid not null references nodes, of_id uuid not null,
    at timestamptz(6) not null default clock_timestamp(), is_new boolean not null, changes jsonb not null,
    subject text, client_id text, correlation_id text)`,
  'create index activity_of on activity (node_id, of_id, at, id)',
  // Whoever writes sets the author for the transaction, as for the versions of wallet rules.
  `create function keep_activity() returns trigger language plpgsql security definer as $$
    declare
      before jsonb := case tg_op when 'INSERT' then '{}'::jsonb else to_jsonb(old) end;
      after jsonb := to_jsonb(new);
      author jsonb := nullif(current_setting('portcullis.rule_author', true), '')::jsonb;
      changes jsonb;
    begin
      select jsonb_object_agg(ltrim(name, '-'), case when name like '-%' then '[null, null]'::jsonb
        else jsonb_build_array(before->name, after->name) end) into changes
      from unnest(tg_argv) as name
      where coalesce(before->ltrim(name, '-'), 'null') <> coalesce(after->ltrim(name, '-'), 'null');
      if changes is not null then
        insert into activity (node_id, of_id, is_new, changes, subject, client_id, correlation_id)
        values ((after->>'node_id')::uuid, coalesce(after->>'wallet_id', after->>'client_id', after->>'id')::uuid,
          tg_op = 'INSERT' and jsonb_exists(after, 'id'), changes, author->>'subject', author->>'client_id', author->>'correlation_id');
      end if;
      return null;
    end $$`,
  `do $$
    begin
      execute format('alter function keep_activity() set search_path = %I, pg_temp', current_schema());
      revoke execute on function keep_activity() from public;
    end $$`,
  `alter function keep_activity() set timezone = 'UTC'`,
  trigger('clients', `insert or ${updateOf(KEPT.clients)}`, KEPT.clients),
  // The previous secret is written again, with its end.
  trigger('client_secrets', 'insert', ['-hash'], 'when (new.expires_at is null)'),
  trigger('supervisors', `insert or ${updateOf(KEPT.supervisors)}`, KEPT.supervisors),
  trigger('users', updateOf(KEPT.users), KEPT.users),
  trigger('wallet_networks', 'insert', ['network_id']),
];

/** Changes of clients, supervisors, users and the networks of wallets, with their authors. */
export class Migration20261128230200Activity extends Migration {
  override up(): void {
    for (const statement of STATEMENTS) this.addSql(statement);
  }
}

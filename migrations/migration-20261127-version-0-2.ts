import { Migration } from '@mikro-orm/migrations';

const AUDIT = [
  // LZ4 takes a third of the time. A server without it keeps its default. Later partitions inherit the setting.
  `do $$
    declare part regclass;
    begin
      for part in select relid from pg_partition_tree('audit_records') loop
        execute format('alter table %s alter column request_body set compression lz4,
          alter column response_body set compression lz4, alter column headers set compression lz4', part);
      end loop;
    exception when feature_not_supported then null;
    end $$`,
  'create sequence audit_positions',
  // The default is set apart from the column, so that PostgreSQL does not rewrite the records of 0.1.0.
  `alter table audit_records
    add chain_id uuid, add chain_index bigint, add previous_hash bytea, add hash bytea, add salts bytea,
    add subject text, add client_id text, add operation text, add noted_users uuid[], add digests text[],
    add position bigint`,
  "alter table audit_records alter column position set default nextval('audit_positions')",
  'alter sequence audit_positions owned by audit_records.position',
  'create index audit_records_chain on audit_records (chain_id, chain_index) where chain_id is not null',
  'create index audit_records_users on audit_records using gin (noted_users) where noted_users is not null',
  `create table audit_seals (
    position bigint primary key, chain_id uuid, kind text not null, body text not null, signature bytea)`,
  'create index audit_seals_of_chain on audit_seals (chain_id, position) where chain_id is not null',
];

/** What the body of a seal must be, by its kind, as a predicate of a JSON path. */
const INDEX = (name: string) => `$.${name}.type() == "number" && $.${name} % 1 == 0`;
const HASH = '$.hash like_regex "^[0-9a-f]{64}$"';
const BODIES: Record<string, string> = {
  opened: '$.chain.type() == "string"',
  checkpoint: `$.chain.type() == "string" && ${INDEX('index')} && ${INDEX('spooled')} && ${HASH}`,
  closed: `$.chain.type() == "string" && ${INDEX('index')} && ${HASH}`,
  gap: `$.chain.type() == "string" && ${INDEX('from')} && ${INDEX('to')} && ($.reason == "lost" || $.reason == "refused")`,
  erasure: '$.user like_regex "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"',
  dropped: `$.before like_regex "^[1-9][0-9]{3}-" && $.ranges.type() == "array" && ${INDEX('unchained')}`,
};
const KINDS = Object.entries(BODIES).map(([kind, path]) => `when '${kind}' then body @@ '${path}'`);

const NO_HASH = '0'.repeat(64);

const ERASABLE = ['query', 'request_body', 'response_body'];
/** The digest of a column, as `columnDigests` computes it. */
const DIGESTS = ERASABLE.map((column, index) => {
  const salt = `encode(substring(a.salts from ${index * 16 + 1} for 16), 'hex')`;
  return `case when a.${column} is null then '-' || ${salt} else encode(sha256(convert_to(${salt} || a.${column}, 'UTF8')), 'hex') end`;
});

const FUNCTIONS = [
  // Adds a seal if it comes next, follows on the one before, and is one of the given kinds, with the body of its kind.
  `create function add_audit_seal(seal json, kinds text[]) returns void language plpgsql as $$
    declare
      given audit_seals := json_populate_record(null::audit_seals, seal);
      body jsonb := given.body::jsonb;
      last audit_seals;
      hash text := '${NO_HASH}';
    begin
      select * into last from audit_seals order by position desc limit 1;
      if last.position is not null then
        hash := encode(sha256(convert_to(last.body || chr(10) || coalesce(encode(last.signature, 'hex'), ''), 'UTF8')), 'hex');
      end if;
      if not coalesce(
        given.position = coalesce(last.position, 0) + 1 and body->'position' = to_jsonb(given.position)
        and given.kind = any (kinds) and body->>'kind' = given.kind
        and body->>'chain' is not distinct from given.chain_id::text and body->>'previous' = hash
        and body->>'at' ~ '^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z$' and jsonb_typeof(body->'key') in ('string', 'null')
        and (given.kind = 'dropped' or length(given.body) < 1000)
        and case given.kind ${KINDS.join(' ')} end, false)
      then
        raise exception 'this is no seal at the position %', coalesce(last.position, 0) + 1;
      end if;
      insert into audit_seals select given.*;
    end $$`,
  `create function audit_seal(seal json) returns void language plpgsql security definer as $$
    begin
      perform add_audit_seal(seal, array['opened', 'checkpoint', 'closed', 'gap', 'erasure']);
    end $$`,
  // One record after another: each is found by its key, however many have noted the user. A record of a request that began
  // after the erasure shows nothing of the user: only clocks can differ.
  `create function audit_erase(erased_user uuid, ats timestamptz[], ids uuid[]) returns integer
    language plpgsql security definer as $$
    declare
      erased integer := 0;
    begin
      for place in 1 .. coalesce(cardinality(ids), 0) loop
        update audit_records a set
          digests = case when a.salts is null then '{}' else array[${DIGESTS.join(', ')}] end,
          salts = null, ${ERASABLE.map((column) => `${column} = null`).join(', ')}
        from users u
        where a.at = ats[place] and a.id = ids[place] and u.id = erased_user and u.node_id = a.node_id
          and a.noted_users @> array[erased_user] and a.digests is null
          and a.at < coalesce(u.erased_at + interval '10 minutes', 'infinity');
        if found then
          erased := erased + 1;
        end if;
      end loop;
      return erased;
    end $$`,
  // The owner of the tables sets it; no record goes before, whoever asks for it.
  'create function audit_retention_days() returns integer language sql stable as $$select 90$$',
  `create function require_audit_age(until timestamptz) returns void language plpgsql as $$
    begin
      if not coalesce(until <= now() - make_interval(days => audit_retention_days()), false) then
        raise exception 'audit records are kept for % days', audit_retention_days();
      end if;
    end $$`,
  `create function add_drop_seal(seal json, dropped bigint) returns void language plpgsql as $$
    declare
      body jsonb := (seal->>'body')::jsonb;
    begin
      perform add_audit_seal(seal, array['dropped']);
      perform require_audit_age((body->>'before')::timestamptz);
      if dropped is distinct from (body->>'unchained')::bigint + (
          select coalesce(sum(r."to" - r."from" + 1), 0)::bigint
          from jsonb_to_recordset(body->'ranges') as r ("from" bigint, "to" bigint))
        or (body->>'unchained')::bigint < 0
        or exists (
          select from jsonb_to_recordset(body->'ranges') as r ("from" bigint, "to" bigint)
          where not coalesce(r."from" <= r."to", false))
        or length(seal->>'body') > 1000 + 200 * jsonb_array_length(body->'ranges')
      then
        raise exception 'this is no seal of % dropped records', dropped;
      end if;
    end $$`,
  `create function audit_delete(last_at timestamptz, last_id uuid, seal json) returns void
    language plpgsql security definer as $$
    declare
      dropped bigint;
    begin
      perform require_audit_age(last_at);
      delete from audit_records where (at, id) <= (last_at, last_id);
      get diagnostics dropped = row_count;
      perform add_drop_seal(seal, dropped);
    end $$`,
  `create function audit_drop_month(name text, seal json) returns void language plpgsql security definer as $$
    declare
      dropped bigint;
    begin
      if not exists (
        select from pg_partition_tree('audit_records')
        where relid = to_regclass(name) and level = 1 and name ~ '^audit_records_[0-9]{4}_[0-9]{2}$'
      ) then
        raise exception '% is no month of audit_records', name;
      end if;
      perform require_audit_age(
        (to_date(right(name, 7), 'YYYY_MM')::timestamp + interval '1 month') at time zone 'UTC');
      execute format('lock table %I in access exclusive mode', name);
      execute format('select count(*) from %I', name) into dropped;
      execute format('drop table %I', name);
      perform add_drop_seal(seal, dropped);
    end $$`,
  // While the lock lasts, no record of the month can enter the default partition, which may hold some already.
  `create function audit_make_month(month date) returns void
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
    end $$`,
  // Whoever writes a rule sets the author for the transaction.
  `create function keep_wallet_rule_version() returns trigger language plpgsql security definer as $$
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
        sign_and_approve_rule, permissionless_transfer_limit_rule, status, at, deleted, subject, client_id, correlation_id)
      values (
        rule.node_id, rule.id, rule.version, rule.wallet_id, rule.name, rule.type, rule.network_id,
        rule.network_currency_id, rule.priority, rule.auto_transfer_rule, rule.sign_and_approve_rule,
        rule.permissionless_transfer_limit_rule, rule.status, rule.updated_at, tg_op = 'DELETE', author->>'subject',
        author->>'client_id', author->>'correlation_id');
      return null;
    end $$`,
];

const IN_UTC = [
  ...['add_audit_seal(json, text[])', 'audit_seal(json)', 'audit_erase(uuid, timestamptz[], uuid[])'],
  ...['require_audit_age(timestamptz)', 'add_drop_seal(json, bigint)', 'audit_delete(timestamptz, uuid, json)'],
  ...['audit_drop_month(text, json)', 'keep_wallet_rule_version()'],
];

// Without these, whoever calls them could put a temporary table in the place of a real one, or shift times.
const GUARDS = [
  ...[...IN_UTC, 'audit_make_month(date)'].map(
    (name) => `do $$
      begin
        execute format('alter function ${name} set search_path = %I, pg_temp', current_schema());
        revoke execute on function ${name} from public;
      end $$`,
  ),
  ...IN_UTC.map((name) => `alter function ${name} set timezone = 'UTC'`),
];

const OTHER_SCOPES = [
  ...['accounts:read', 'wallets:read', 'wallets:write', 'wallet-rules:read', 'wallet-rules:write', 'users:read'],
  ...['users:migrate', 'transactions:read', 'transactions:write', 'tokens:read', 'clients:manage', 'audit:read'],
];

/** Returns the clause that limits a text, in characters. */
function length(table: string, column: string, max: number): string {
  return `add constraint ${table}_${column}_length check (char_length(${column}) <= ${max}) not valid`;
}

/** Returns the clause that limits a list or JSON as text, in bytes. */
function size(table: string, column: string, max: number): string {
  return `add constraint ${table}_${column}_size check (octet_length(${column}::text) <= ${max}) not valid`;
}

/**
 * The tables are in the order in which requests lock them: a request that meets the migration in a deadlock could be the one that
 * fails. The limits are not validated: 0.1.0 limits no name, so its rows may be longer, and stay. Two columns of `migration_rows` have
 * no limit: 0.1.0 stores the email and the external id of a failed row as they were sent.
 */
const REQUESTED_TABLES = [
  'alter table idempotent_answers add noted_users uuid[]',
  'alter table networks add explorer_url text',
  'alter table network_currencies add name text, add decimals integer',
  'create index network_currencies_page on network_currencies (symbol, id)',
  `alter table users add erased_at timestamptz(6), add erased_records integer, add erased_responses integer,
    add erased_by text, ${length('users', 'email', 512)}, ${length('users', 'external_id', 512)},
    ${length('users', 'name', 1_024)}, ${length('users', 'surname', 1_024)}, ${length('users', 'address', 256)},
    ${length('users', 'erased_by', 1_024)}`,
  'create index users_erased on users (erased_at) where erased_at is not null',
  `alter table migrations add dry_run boolean not null default false, ${length('migrations', 'created_by', 1_024)}`,
  `alter table migration_jobs add failed_bytes bigint not null default 0, add dry_run_columns text,
    ${length('migration_jobs', 'correlation_id', 1_024)}`,
  'alter table migration_rows add noted_users uuid[]',
  'create index migration_files_node on migration_files (node_id)',
  `alter table wallet_rules ${length('wallet_rules', 'name', 1_024)},
    ${size('wallet_rules', 'auto_transfer_rule', 524_288)}`,
  'create index wallet_rules_of_node on wallet_rules (node_id, created_at, id, updated_at, type)',
  `create table wallet_rule_versions (
    node_id uuid not null, rule_id uuid not null, version integer not null, wallet_id uuid not null,
    name text not null, type text not null, network_id uuid not null, network_currency_id uuid not null,
    priority smallint, auto_transfer_rule jsonb, sign_and_approve_rule jsonb, permissionless_transfer_limit_rule jsonb,
    status text not null, deleted boolean not null default false, at timestamptz(6) not null,
    subject text, client_id text, correlation_id text, primary key (node_id, rule_id, version))`,
  `create trigger keep_wallet_rule_version after insert or delete on wallet_rules
    for each row execute function keep_wallet_rule_version()`,
  `create trigger keep_changed_wallet_rule_version after update on wallet_rules
    for each row when (old.* is distinct from new.*) execute function keep_wallet_rule_version()`,
  // The present content of each rule is its first version, of its own time.
  `insert into wallet_rule_versions (
      node_id, rule_id, version, wallet_id, name, type, network_id, network_currency_id, priority, auto_transfer_rule,
      sign_and_approve_rule, permissionless_transfer_limit_rule, status, at)
    select node_id, id, version, wallet_id, name, type, network_id, network_currency_id, priority, auto_transfer_rule,
      sign_and_approve_rule, permissionless_transfer_limit_rule, status, updated_at
    from wallet_rules`,
  `alter table wallet_rule_versions ${length('wallet_rule_versions', 'name', 1_024)},
    ${length('wallet_rule_versions', 'subject', 1_024)}, ${length('wallet_rule_versions', 'client_id', 1_024)},
    ${length('wallet_rule_versions', 'correlation_id', 1_024)},
    ${size('wallet_rule_versions', 'auto_transfer_rule', 524_288)}`,
  `alter table clients add own_tokens_from timestamptz(6), add is_console boolean not null default false,
    ${length('clients', 'name', 255)},
    ${length('clients', 'cert_fingerprint', 383)}, ${size('clients', 'scopes', 262_144)},
    ${size('clients', 'allowed_ips', 65_536)}`,
  // A client with every scope of 0.1.0 has every scope.
  `update clients set scopes = scopes || 'users:erase'::text
    where scopes @> array[${OTHER_SCOPES.map((name) => `'${name}'`).join(', ')}] and not scopes @> array['users:erase']`,
  `alter table supervisors ${length('supervisors', 'username', 255)}`,
  `alter table login_failures add address text, ${length('login_failures', 'username', 510)}`,
  'alter table spent_refresh_tokens add successor jsonb',
  `alter table revoked_tokens ${length('revoked_tokens', 'token_id', 255)}`,
  `alter table transaction_ids ${length('transaction_ids', 'id', 128)}`,
  // One index for the order of the list and the values of its filters, and small ones for what is looked for.
  `create index transactions_registered on transactions (
    node_id, registered_at, id, collection, type, status, updated_seconds, updated_nanos)`,
  'create index transactions_updated on transactions (node_id, updated_seconds, updated_nanos, status)',
  'create index transactions_not_done on transactions (node_id, status, registered_at, id) where status <> 3',
  // A transaction enters it when it is registered, done or failed, and not with every notification.
  'create index transactions_by_type on transactions (node_id, type, collection) where status is null or status in (3, 4)',
  `create index transactions_by_hash_start on transactions (node_id, left(transaction_hash, 512))
    where transaction_hash <> ''`,
  'create index transactions_in_conflict on transactions (node_id, registered_at, id) where done_seen and error_seen',
  `create index transactions_flagged on transactions (node_id, registered_at, id)
    where type < 1 or (collection = 'token_transactions' and type > 22)
      or (collection = 'node_transactions' and type > 60) or (collection = 'user_transactions' and type > 10)`,
  'alter table node_event_seq add timeline integer',
];

/**
 * From 0.1.0: chains and seals of audit records, and the functions that alone change records; versions of wallet rules;
 * what an erasure needs; the pair that a refresh token gave; the greatest lengths of texts. What reads whole tables comes first, and what requests lock last.
 */
export class Migration20261127Version02 extends Migration {
  override up(): void {
    for (const statement of [...AUDIT, ...FUNCTIONS, ...GUARDS, ...REQUESTED_TABLES]) this.addSql(statement);
  }
}

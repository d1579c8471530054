import { Migration } from '@mikro-orm/migrations';

/**
 * Audit records note users, callers and operations, and the order of their arrival. Their chains begin anew: records of
 * chains of before stay, without a place in one.
 */
const RECORDS = [
  'drop index audit_records_chain',
  `alter table audit_records
    drop column chain_id, drop column chain_index, drop column previous_hash, drop column hash, drop column salts,
    drop column erased`,
  'create sequence audit_positions',
  // The default is set apart from the column, so that PostgreSQL does not rewrite the records of before.
  `alter table audit_records
    add chain_id uuid, add chain_index bigint, add previous_hash bytea, add hash bytea, add salts bytea,
    add subject text, add client_id text, add operation text, add noted_users uuid[], add digests text[],
    add position bigint`,
  "alter table audit_records alter column position set default nextval('audit_positions')",
  'alter sequence audit_positions owned by audit_records.position',
  'create index audit_records_chain on audit_records (chain_id, chain_index) where chain_id is not null',
  'create index audit_records_users on audit_records using gin (noted_users) where noted_users is not null',
];

// Last, and in the order in which services lock them, so that no request of a running service waits long or deadlocks.
const USERS = [
  'alter table idempotent_answers add noted_users uuid[]',
  'alter table users add erased_at timestamptz(6)',
  'create index users_erased on users (erased_at) where erased_at is not null',
  'alter table migration_rows add noted_users uuid[]',
];

const OTHERS = [
  ...['accounts:read', 'wallets:read', 'wallets:write', 'wallet-rules:read', 'wallet-rules:write', 'users:read'],
  ...['users:migrate', 'transactions:read', 'transactions:write', 'tokens:read', 'clients:manage', 'audit:read'],
];

const CLIENTS = `
  update clients set scopes = scopes || 'users:erase'::text
  where scopes @> array[${OTHERS.map((name) => `'${name}'`).join(', ')}] and not scopes @> array['users:erase']`;

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

const SEALS = [
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
  `create or replace function audit_seal(seal json) returns void language plpgsql security definer as $$
    begin
      perform add_audit_seal(seal, array['opened', 'checkpoint', 'closed', 'gap', 'erasure']);
    end $$`,
];

const ERASABLE = ['query', 'request_body', 'response_body'];
/** The digest of a column, as `columnDigests` computes it. */
const DIGESTS = ERASABLE.map((column, index) => {
  const salt = `encode(substring(a.salts from ${index * 16 + 1} for 16), 'hex')`;
  return `case when a.${column} is null then '-' || ${salt} else encode(sha256(convert_to(${salt} || a.${column}, 'UTF8')), 'hex') end`;
});

const CHANGES = [
  'drop function audit_erase(json, json)',
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
  `create or replace function audit_delete(last_at timestamptz, last_id uuid, seal json) returns void
    language plpgsql security definer as $$
    declare
      dropped bigint;
    begin
      perform require_audit_age(last_at);
      delete from audit_records where (at, id) <= (last_at, last_id);
      get diagnostics dropped = row_count;
      perform add_drop_seal(seal, dropped);
    end $$`,
  `create or replace function audit_drop_month(name text, seal json) returns void language plpgsql security definer as $$
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
];

const RULES = [
  // Whoever writes a rule sets the author for the transaction.
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
        sign_and_approve_rule, permissionless_transfer_limit_rule, status, at, deleted, subject, client_id, correlation_id)
      values (
        rule.node_id, rule.id, rule.version, rule.wallet_id, rule.name, rule.type, rule.network_id,
        rule.network_currency_id, rule.priority, rule.auto_transfer_rule, rule.sign_and_approve_rule,
        rule.permissionless_transfer_limit_rule, rule.status, rule.updated_at, tg_op = 'DELETE', author->>'subject',
        author->>'client_id', author->>'correlation_id');
      return null;
    end $$`,
];

// Without these, whoever calls them could put a temporary table in the place of a real one, or shift times.
const GUARDS = `
  do $$
  declare name text;
  begin
    foreach name in array array[
      'add_audit_seal(json, text[])', 'audit_seal(json)', 'audit_erase(uuid, timestamptz[], uuid[])', 'require_audit_age(timestamptz)',
      'add_drop_seal(json, bigint)', 'audit_delete(timestamptz, uuid, json)', 'audit_drop_month(text, json)',
      'keep_wallet_rule_version()']
    loop
      execute format('alter function %s set search_path = %I, pg_temp', name, current_schema());
      execute format('alter function %s set timezone = ''UTC''', name);
      execute format('revoke execute on function %s from public', name);
    end loop;
  end $$`;

/**
 * Erasure by provenance, and what the database enforces of the audit whatever the role of services asks for. The functions
 * that begin with `audit_` are for that role, the others for these alone.
 */
export class Migration20261205AuditProvenance extends Migration {
  override up(): void {
    for (const statement of [...RECORDS, ...SEALS, ...CHANGES, ...RULES, GUARDS, ...USERS, CLIENTS])
      this.addSql(statement);
  }
}

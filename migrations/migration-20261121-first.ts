import { Migration } from '@mikro-orm/migrations';

const REFERENCE = `
  create table nodes (
    id uuid primary key, name text not null, created_at timestamptz(6) not null default now());
  create table chains (id uuid primary key, name text not null);
  create table networks (id uuid primary key, chain_id uuid not null references chains, name text not null);
  create table network_currencies (
    id uuid primary key, network_id uuid not null references networks, symbol text not null);
  create table accounts (
    id uuid primary key, node_id uuid not null references nodes, name text not null, type text not null,
    status integer not null, created_at timestamptz(6) not null, updated_at timestamptz(6) not null,
    deleted_at timestamptz(6), unique (node_id, id));
  create index accounts_page on accounts (node_id, created_at, id);
  create index accounts_live_page on accounts (node_id, created_at, id) where deleted_at is null;
  create table wallets (
    id uuid primary key, node_id uuid not null references nodes, account_id uuid not null,
    chain_id uuid not null references chains, created_at timestamptz(6) not null,
    updated_at timestamptz(6) not null, unique (node_id, id),
    foreign key (node_id, account_id) references accounts (node_id, id));
  create index wallets_of_account on wallets (node_id, account_id, created_at, id);
  create table wallet_networks (
    wallet_id uuid not null, network_id uuid not null references networks, node_id uuid not null,
    created_at timestamptz(6) not null default now(), primary key (wallet_id, network_id),
    foreign key (node_id, wallet_id) references wallets (node_id, id));
  create table assets (
    id uuid primary key, node_id uuid not null references nodes, name text not null, symbol text not null,
    type text not null, network_id uuid not null references networks, contract_address text,
    contract_settled boolean not null default false, status text not null, created_at timestamptz(6) not null,
    updated_at timestamptz(6) not null, unique (node_id, id));
  create table users (
    id uuid primary key, node_id uuid not null references nodes, external_id text, name text not null default '',
    surname text not null default '', email text not null default '', address text not null,
    identity_number text not null default '', kyc_verified boolean not null default false,
    kyc_token_sent boolean not null default false, kyc_token_sent_at timestamptz(6), kyc_token_tx_hash text,
    created_at timestamptz(6) not null default now(), unique (node_id, id));
  create unique index users_email on users (node_id, lower(email)) where email <> '';
  create unique index users_external_id on users (node_id, external_id);
  create unique index users_address on users (node_id, address) where address <> '';
`;

const ACCESS = `
  create table clients (
    id uuid primary key, node_id uuid not null references nodes, name text not null,
    grant_types text[] not null, scopes text[] not null, token_expiry_enabled boolean not null default true,
    token_expiry_duration integer, allowed_ips text[] not null default '{}',
    require_certificate boolean not null default false, cert_fingerprint text, requests_per_second integer,
    requests_per_minute integer, requests_per_hour integer, monthly_limit integer,
    refresh_reuse_detection boolean not null default false,
    status text not null default 'active' check (status in ('active', 'disabled')), last_used_at timestamptz(6),
    created_at timestamptz(6) not null default now(), updated_at timestamptz(6) not null default now(),
    unique (node_id, id));
  create table client_secrets (
    hash bytea primary key, client_id uuid not null, node_id uuid not null,
    created_at timestamptz(6) not null default now(), expires_at timestamptz(6),
    foreign key (node_id, client_id) references clients (node_id, id));
  create index client_secrets_of_client on client_secrets (client_id);
  create table supervisors (
    id uuid primary key, node_id uuid not null references nodes, username text not null, password_hash text not null,
    role text not null, status text not null default 'active' check (status in ('active', 'disabled')),
    created_at timestamptz(6) not null default now(), updated_at timestamptz(6) not null default now(),
    unique (node_id, id));
  create unique index supervisors_username on supervisors (node_id, lower(username));
  create table sessions (
    id uuid primary key, node_id uuid not null, supervisor_id uuid not null, client_id uuid not null,
    created_at timestamptz(6) not null default now(), expires_at timestamptz(6) not null, revoked_at timestamptz(6),
    foreign key (node_id, supervisor_id) references supervisors (node_id, id),
    foreign key (node_id, client_id) references clients (node_id, id));
  create index sessions_live on sessions (node_id, supervisor_id, created_at) where revoked_at is null;
`;

const TRANSACTIONS = `
  create table transaction_ids (id text primary key);
  create table transactions (
    id text primary key references transaction_ids, node_id uuid not null references nodes, collection text not null,
    registered_type integer not null, registered_by text not null check (registered_by in ('mutation', 'topic')),
    asset_id uuid, type integer not null, status smallint, status_key text collate "C", error text,
    transaction_hash text not null default '', transaction_hash_key text collate "C",
    contract_address text not null default '', contract_address_key text collate "C",
    gas_used numeric(20, 0) not null default 0, gas_used_key text collate "C",
    created_text text, created_seconds bigint, created_nanos integer,
    updated_text text, updated_seconds bigint, updated_nanos integer,
    done_seen boolean not null default false, error_seen boolean not null default false,
    registered_at timestamptz(6) not null default now(), unique (node_id, id));
  create index transactions_page on transactions (node_id, registered_at, id);
  create index transactions_of_asset on transactions (asset_id) where asset_id is not null;
  create table parked_notifications (
    id text not null references transaction_ids, body_sha256 bytea not null, body bytea not null,
    correlation_id text not null, parked_at timestamptz(6) not null default now(), primary key (id, body_sha256));
  create table node_event_seq (node_id uuid primary key references nodes, seq bigint not null default 0);
  create table transaction_events (
    node_id uuid not null, seq bigint not null, transaction_id text not null, status smallint not null,
    previous_status smallint, correlation_id text not null, transaction jsonb not null,
    occurred_at timestamptz(6) not null default clock_timestamp(), primary key (node_id, seq),
    foreign key (node_id, transaction_id) references transactions (node_id, id));
  create index transaction_events_of_transaction on transaction_events (transaction_id, seq);
`;

const PLUMBING = `
  create table audit_records (
    at timestamptz(6) not null, id uuid not null, node_id uuid, correlation_id text not null, method text not null,
    path text not null, query text, status_code integer not null, elapsed double precision not null,
    headers jsonb not null, remote_address text not null, real_ip text not null, request_body text,
    request_bytes bigint not null, response_body text, response_bytes bigint not null, is_api boolean not null,
    aborted boolean not null default false, primary key (at, id)) partition by range (at);
  create table audit_records_default partition of audit_records default;
  create index audit_records_page on audit_records (node_id, at desc, id desc);
  create table bus_messages (
    topic text not null, position bigint generated always as identity, key text not null, value bytea,
    headers jsonb not null, created_at timestamptz(6) not null default now(), primary key (topic, position));
  create table bus_offsets (
    group_id text not null, topic text not null, position bigint not null, primary key (group_id, topic));
`;

/** The first schema. Tables of a node carry `node_id`, tied to their parents by composite foreign keys. */
export class Migration20261121First extends Migration {
  override up(): void {
    for (const statement of [REFERENCE, ACCESS, TRANSACTIONS, PLUMBING].join('').split(';')) {
      if (statement.trim() !== '') this.addSql(statement);
    }
  }
}

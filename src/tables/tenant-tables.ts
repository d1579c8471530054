import type { Tables } from './tables.ts';

/** The tables with a `node_id`: the compiler holds that each of them is named here, and no other. */
type TenantTables = {
  [Name in keyof Tables as 'node_id' extends keyof Tables[Name] ? Name : never]: true;
};

/**
 * The names of the tables whose rows belong to tenants. They are listed here, and not taken from the declarations, so
 * that a start need not load those.
 */
export const TENANT_TABLES: TenantTables = {
  access_changes: true,
  account_blocks: true,
  account_changes: true,
  account_superblocks: true,
  accounts: true,
  activity: true,
  assets: true,
  audit_export_chunks: true,
  audit_exports: true,
  audit_records: true,
  client_quotas: true,
  client_secrets: true,
  clients: true,
  idempotent_answers: true,
  login_failures: true,
  migration_files: true,
  migration_jobs: true,
  migration_rows: true,
  migrations: true,
  node_event_seq: true,
  revoked_tokens: true,
  seen_attention: true,
  sessions: true,
  spent_refresh_tokens: true,
  supervisors: true,
  transaction_events: true,
  transactions: true,
  users: true,
  wallet_networks: true,
  wallet_rule_versions: true,
  wallet_rules: true,
  wallets: true,
};

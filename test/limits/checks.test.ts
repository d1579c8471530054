import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { lengthsPage } from '../../scripts/lengths-page.ts';
import { MAX_LENGTHS, MAX_SIZES } from '../../src/tables/text-lengths.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { scratchDatabase } from '../support/harness/databases.ts';
import { ROOT } from '../support/start/process.ts';

/** The columns with texts, lists, JSON or bytes that have no check of their length, by the reason. */
const UNCHECKED: Record<string, Record<string, string>> = {
  'reference topics are not bounded': {
    accounts: 'name type',
    assets: 'name symbol type contract_address status',
    chains: 'name',
    network_currencies: 'symbol name',
    networks: 'name explorer_url',
    nodes: 'name',
    reference_parked: 'value kind waits_for_kind reason',
    reference_tombstones: 'kind',
  },
  'notifications are bounded by their body': {
    parked_notifications: 'id body body_sha256 correlation_id traceparent',
    transaction_events: 'transaction correlation_id traceparent',
    transactions:
      'error transaction_hash contract_address created_text updated_text status_key transaction_hash_key contract_address_key gas_used_key',
  },
  'the gateway cuts what an audit record keeps': {
    audit_records:
      'correlation_id method path query headers remote_address real_ip request_body response_body previous_hash hash salts digests subject client_id operation noted_users',
    audit_seals: 'kind body signature',
  },
  'a tenant asks for one export at a time, in the body of a request': {
    audit_exports: 'status asked filter requested_by reason state',
    audit_export_chunks: 'file bytes',
  },
  'processes and operators of the installation write them, no caller': {
    processes: 'role version host state',
    dead_letter_decisions: 'topic decision reason decided_by',
  },
  'the release before stores the identifiers of a failed row as they were sent': {
    migration_rows: 'email external_id',
  },
  'their values are the product’s own': {
    access_changes: 'kind subject item',
    activity: 'changes subject client_id correlation_id',
    bus_messages: 'topic key value headers',
    bus_offsets: 'group_id topic',
    client_quotas: 'month',
    client_secrets: 'hash',
    clients: 'grant_types status',
    idempotent_answers: 'scope body_sha256 headers body noted_users',
    migration_files: 'bytes',
    login_failures: 'address',
    migration_jobs: 'columns dry_run_columns',
    migration_rows: 'status reason noted_users',
    migrations: 'status',
    outbox: 'topic key event_type payload correlation_id traceparent',
    seen_attention: 'kind key members',
    spent_refresh_tokens: 'digest successor',
    supervisors: 'password_hash role status',
    transactions: 'collection registered_by',
    users: 'identity_number kyc_token_tx_hash erased_migrations erased_seal',
    wallet_rule_versions: 'type status sign_and_approve_rule permissionless_transfer_limit_rule',
    wallet_rules: 'type status sign_and_approve_rule permissionless_transfer_limit_rule',
  },
  'they refer to a column with a check': {
    transaction_events: 'transaction_id',
    transaction_lookups: 'id',
    transactions: 'id',
  },
};

const database = beforeTests(scratchDatabase);

function named(limits: Record<string, Record<string, unknown>>): string[] {
  return Object.entries(limits).flatMap(([table, columns]) => Object.keys(columns).map((name) => `${table}.${name}`));
}

it('D7-13: every text, list, JSON and bytes column has a length check, or a documented reason to have none', async () => {
  const columns = await database.db.unscoped('test').raw<{ name: string }>(
    (sql) => sql`
      select c.table_name || '.' || c.column_name as name from information_schema.columns c
      join information_schema.tables t using (table_schema, table_name)
      where table_schema = 'public' and t.table_type = 'BASE TABLE' and data_type in ('text', 'ARRAY', 'json', 'jsonb', 'bytea')
        and table_name !~ '^(audit_records_|mikro_orm)'`,
  );
  const reasoned = Object.values(UNCHECKED).flatMap((tables) =>
    Object.entries(tables).flatMap(([table, names]) => names.split(' ').map((name) => `${table}.${name}`)),
  );
  const known = [...named(MAX_LENGTHS), ...named(MAX_SIZES), ...reasoned];
  expect(columns.map(({ name }) => name).toSorted()).toEqual(known.toSorted());
});

it('D7-13: docs/lengths.md lists the maximum lengths in force', () => {
  expect(readFileSync(join(ROOT, 'docs/lengths.md'), 'utf8')).toBe(lengthsPage());
});

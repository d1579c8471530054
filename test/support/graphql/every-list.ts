import { type Fixture, NODE, OTHER_NODE } from './fixture.ts';

/** How many rows each list of `OTHER_NODE` has; of `NODE`, each list of the root. */
export const SHORT = 8;
export const LONG = 50;

const ACCOUNT = 'ac000000-0000-4000-8000-000000000001';
const WALLET = 'aa110000-0000-4000-8000-000000000001';
const MIGRATION = 'a1910000-0000-4000-8000-000000000001';
const RULE = '0a1e0000-0000-4000-8000-000000000001';
const USER = '05e40000-0000-4000-8000-000000000001';
const CLIENT = 'c11e0000-0000-4000-8000-000000000001';
const SUPERVISOR = '50be0000-0000-4000-8000-000000000001';
const ASSET = 'a55e0000-0000-4000-8000-000000000001';
const TRANSACTION = 'tx-1';

/** A list: what asks for it, with a place for the arguments of its page, and how its rows stand in the database. */
export interface List {
  asks: string;
  /** What tells a row of it from another. */
  key: 'id' | 'cursor' | 'index' | 'version';
  table: string;
  column: string;
  order: string;
  /** Of the rows of the table, those that are in the list; the node's by default. */
  where?: string;
  isNewestFirst?: true;
}

const versions: Omit<List, 'asks'> = {
  ...{ table: 'wallet_rule_versions', where: `rule_id = '${RULE}'` },
  ...{ key: 'version', column: 'version', order: 'version', isNewestFirst: true },
};
const byCreation = { key: 'id', column: 'id', order: 'created_at, id' } as const;

/** The changes of something. */
function activity(parent: string, id: string): List {
  return {
    ...{ asks: `of: ${parent}(id: "${id}") { list: activity(@)`, table: 'activity', where: `of_id = '${id}'` },
    ...{ key: 'id', column: 'id', order: 'at, id', isNewestFirst: true },
  };
}

/** Every list of the schema, those of `OTHER_NODE`'s first parent where it has one. */
export const LISTS: Record<string, List> = {
  'Query.accounts': { asks: 'list: accounts(@)', table: 'accounts', ...byCreation },
  'Account.wallets': { asks: `of: account(id: "${ACCOUNT}") { list: wallets(@)`, table: 'wallets', ...byCreation },
  'Query.wallets': { asks: 'list: wallets(@)', table: 'wallets', ...byCreation },
  'Wallet.networks': {
    ...{ asks: `of: wallet(id: "${WALLET}") { list: networks(@)`, table: 'wallet_networks' },
    ...{ key: 'id', column: 'network_id', order: 'created_at, network_id' },
  },
  'Wallet.rules': { asks: `of: wallet(id: "${WALLET}") { list: rules(@)`, table: 'wallet_rules', ...byCreation },
  'Query.walletRules': { asks: `list: walletRules(walletId: "${WALLET}", @)`, table: 'wallet_rules', ...byCreation },
  'WalletRule.versions': { asks: `of: walletRule(id: "${RULE}") { list: versions(@)`, ...versions },
  'Query.walletRuleVersions': { asks: `list: walletRuleVersions(ruleId: "${RULE}", @)`, ...versions },
  'Query.networks': { asks: 'list: networks(@)', table: 'networks', ...byCreation, where: 'true' },
  'Query.networkCurrencies': {
    ...{ asks: 'list: networkCurrencies(@)', table: 'network_currencies', where: 'true' },
    ...{ key: 'id', column: 'id', order: 'symbol, id' },
  },
  'Query.users': { asks: 'list: users(@)', table: 'users', ...byCreation },
  'Query.migrations': { asks: 'list: migrations(@)', table: 'migrations', ...byCreation, isNewestFirst: true },
  'Migration.rows': {
    ...{ asks: `of: migration(id: "${MIGRATION}") { list: rows(@)`, table: 'migration_rows' },
    ...{ key: 'index', column: 'index', order: 'index' },
  },
  'Migration.rejectedRows': {
    ...{ asks: `of: migration(id: "${MIGRATION}") { list: rejectedRows(@)`, table: 'migration_rows' },
    ...{ key: 'index', column: 'index', order: 'index' },
  },
  'Query.transactions': {
    ...{ asks: 'list: transactions(@)', table: 'transactions' },
    ...{ key: 'id', column: 'id', order: 'registered_at, id' },
  },
  'Asset.transactions': {
    ...{
      asks: `of: asset(id: "${ASSET}") { list: transactions(@)`,
      table: 'transactions',
      where: `asset_id = '${ASSET}'`,
    },
    ...{ key: 'id', column: 'id', order: 'registered_at, id', isNewestFirst: true },
  },
  'Transaction.events': {
    ...{ asks: `of: transaction(id: "${TRANSACTION}") { list: events(@)`, table: 'transaction_events' },
    ...{ key: 'cursor', column: 'seq', order: 'seq' },
  },
  'Query.assets': { asks: 'list: assets(@)', table: 'assets', ...byCreation },
  'Query.clients': { asks: 'list: clients(@)', table: 'clients', ...byCreation },
  'Query.supervisors': { asks: 'list: supervisors(@)', table: 'supervisors', ...byCreation },
  'Client.activity': activity('client', CLIENT),
  'Supervisor.activity': activity('supervisor', SUPERVISOR),
  'User.activity': activity('user', USER),
  'Wallet.activity': activity('wallet', WALLET),
  'Query.auditExports': { asks: 'list: auditExports(@)', table: 'audit_exports', ...byCreation, isNewestFirst: true },
  'Query.auditRecords': {
    ...{ asks: 'list: auditRecords(@)', table: 'audit_records' },
    ...{ key: 'id', column: 'id', order: 'at, id', isNewestFirst: true },
  },
};

/** The lists that are the same for every node. */
export const GLOBAL_LISTS: readonly string[] = ['Query.networks', 'Query.networkCurrencies'];

/** The document that asks for a page of a list. */
export function askingFor({ asks, key }: List, selection?: string): string {
  const parameters = '$first: Int, $last: Int, $after: String, $before: String';
  const page = 'first: $first, last: $last, after: $after, before: $before';
  const selected =
    selection ??
    `totalCount pageInfo { hasNextPage hasPreviousPage startCursor endCursor } edges { cursor node { key: ${key} } }`;
  const end = asks.includes('{') ? ' }' : '';
  return `query (${parameters}) { ${asks.replace('@', page)} { ${selected} }${end} }`;
}

/** What tells the rows of a list of `OTHER_NODE` apart, in the order of the list. */
export async function rowsOf({ database }: Fixture, { table, column, order, where, isNewestFirst }: List) {
  const rows = await database.db.unscoped('a test looks at its rows').raw(
    (sql) => sql<{ key: string }>`
      select ${sql.raw(column)}::text as key from ${sql.table(table)}
      where ${where === undefined ? sql`node_id = ${OTHER_NODE}` : sql.raw(where)} order by ${sql.raw(order)}`,
  );
  const keys = rows.map(({ key }) => key);
  return isNewestFirst ? keys.reverse() : keys;
}

/**
 * Fills every list. Two rows at a time came to be in the same microsecond, and those in the next one. In `NODE` each
 * parent has two children of each kind, in `OTHER_NODE` the first has all that there are.
 */
export async function fillEveryList(fixture: Fixture): Promise<void> {
  const run = async (text: string) => {
    await fixture.database.db.unscoped('a test sets its rows').raw((sql) => sql.raw(text));
  };
  await run(NETWORKS);
  await run(CURRENCIES);
  for (const statement of [...statements(NODE, LONG, 2), ...statements(OTHER_NODE, SHORT, SHORT)]) await run(statement);
}

/** Not in the order of `n`, so that the order of the list is not that of the rows' ids, nor of their places on disk. */
const newId = "md5('list' || n || random())::uuid";

function at(n: string): string {
  return `timestamptz '2026-01-01T00:00:00.123450Z' + floor(${n} / 2) * interval '1 microsecond'`;
}

const NETWORKS = `insert into networks (id, chain_id, name, created_at)
  select ${newId}, (select id from chains), 'net ' || n, ${at('n')} from generate_series(1, ${LONG}) n`;

const CURRENCIES = `insert into network_currencies (id, network_id, symbol)
  select ${newId}, (select id from networks limit 1), 'C' || n / 2 from generate_series(1, ${LONG}) n`;

function statements(nodeId: string, count: number, children: number): string[] {
  const isShort = nodeId === OTHER_NODE;
  const idOr = (first: string) => (isShort ? `case n when 1 then '${first}'::uuid else ${newId} end` : newId);
  const rows = `generate_series(1, ${count}) n`;
  const mine = `node_id = '${nodeId}'`;
  /** Each child of each parent; or all of the first parent. */
  const of = (parents: string, id: string, first: string) =>
    `(select id as parent from ${parents} where ${mine}${isShort ? ` and ${id} = '${first}'` : ''}) p cross join generate_series(1, ${children}) n`;
  const wallets = isShort
    ? `generate_series(1, ${SHORT}) n, (select '${ACCOUNT}'::uuid as parent) p`
    : of('accounts', 'id', '');
  const transaction = isShort ? "'tx-' || n" : "'long-' || n";
  return [
    `insert into accounts (id, node_id, name, type, status, created_at, updated_at)
      select ${idOr(ACCOUNT)}, '${nodeId}', 'A', 't', 1, ${at('n')}, now() from ${rows}`,
    `insert into wallets (id, node_id, account_id, chain_id, created_at, updated_at)
      select ${idOr(WALLET)}, '${nodeId}', parent, (select id from chains), ${at('n')}, now() from ${wallets}`,
    `insert into wallet_networks (node_id, wallet_id, network_id, created_at)
      select '${nodeId}', parent, (select id from networks where name = 'net ' || n), ${at('n')} from ${of('wallets', 'id', WALLET)}`,
    `insert into wallet_rules (id, node_id, wallet_id, name, type, network_id, network_currency_id, created_at, updated_at)
      select ${idOr(RULE)}, '${nodeId}', parent, 'r', 'auto_transfer', parent, parent, ${at('n')}, now() from ${of('wallets', 'id', WALLET)}`,
    `do $$ begin
      for n in 2..${children} loop update wallet_rules set version = n where node_id = '${nodeId}'; end loop; end $$`,
    `insert into users (id, node_id, address, email, created_at)
      select ${idOr(USER)}, '${nodeId}', '0x' || n, n || '@x.y', ${at('n')} from ${rows}`,
    `insert into migrations (id, node_id, status, created_by, created_at)
      select ${idOr(MIGRATION)}, '${nodeId}', 'done', 'x', ${at('n')} from ${rows}`,
    `insert into migration_rows (migration_id, index, node_id, status)
      select parent, n, '${nodeId}', 'skipped' from ${of('migrations', 'id', MIGRATION)}`,
    `insert into transaction_ids (id) select ${transaction} from ${rows}`,
    `insert into transactions (id, node_id, collection, registered_type, registered_by, type, registered_at, asset_id)
      select ${transaction}, '${nodeId}', 'user_transactions', 1, 'mutation', 1, ${at('n')}, ${isShort ? `'${ASSET}'::uuid` : newId} from ${rows}`,
    `insert into transaction_events (node_id, seq, transaction_id, status, correlation_id, transaction)
      select '${nodeId}', row_number() over (), parent, 1, 'x', '{"transaction_hash": "", "contract_address": ""}' from ${of('transactions', 'id', TRANSACTION)}`,
    `insert into assets (id, node_id, name, symbol, type, network_id, status, created_at, updated_at)
      select ${idOr(ASSET)}, '${nodeId}', 'A', 'A', 'bond', (select id from networks limit 1), 'draft', ${at('n')}, now() from ${rows}`,
    `insert into clients (id, node_id, name, grant_types, scopes, created_at)
      select ${idOr(CLIENT)}, '${nodeId}', 'C', '{}', '{}', ${at('n')} from ${rows}`,
    `insert into supervisors (id, node_id, username, password_hash, role, created_at)
      select ${idOr(SUPERVISOR)}, '${nodeId}', 'user-' || n, '', 'viewer', ${at('n')} from ${rows}`,
    `delete from activity where ${mine}`,
    ...Object.entries({ clients: CLIENT, supervisors: SUPERVISOR, users: USER, wallets: WALLET }).map(
      ([parents, first]) => `insert into activity (node_id, of_id, at, is_new, changes)
        select '${nodeId}', parent, ${at('n')}, false, '{}' from ${of(parents, 'id', first)}`,
    ),
    `insert into audit_exports (id, node_id, status, asked, filter, requested_by, created_at)
      select ${newId}, '${nodeId}', 'expired', '{}', '{}', 'x', ${at('n')} from ${rows}`,
    `insert into audit_records (at, id, node_id, correlation_id, method, path, status_code, elapsed, headers, remote_address, real_ip, request_bytes, response_bytes, is_api)
      select ${at('n')}, ${newId}, '${nodeId}', 'x', 'GET', '/', 200, 1, '{}', '', '', 0, 0, true from ${rows}`,
  ];
}

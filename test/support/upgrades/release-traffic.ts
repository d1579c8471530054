import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { ClientCredentials } from '../oauth/clients.ts';
import { literal } from '../wallet-rules/rules.ts';
import type { Known } from './known.ts';
import type { ReleaseInstance } from './release-instance.ts';

const TEXTS = {
  name: 'Zoë 李小龍 𝔘𝔫𝔦 Ğ',
  surname: "O'Brien \\ \"quoted\" ''\n\ttab",
  gasUsed: '18446744073709551615',
  amount: '123456789012345678901234567890',
  error: 'переполнение \u{1F4A5} € – revert',
};
const FILE_ROWS = 2_500;
const BAD_EVERY = 10;
const SPOOLED = 25;
const PAGE = 5;
const RULES = { 'x-target-server': 'wallet-rules' };
/** More digits than a double has. */
const VERSION = '9223372036854775806';

/** Asks an instance for everything that leaves a row anywhere, and stops its work so that some of each is left undone. */
export async function traffic(instance: ReleaseInstance, release: string, crowded: Crowd): Promise<Known> {
  const { demo, context } = instance;
  const ask = asking(instance);
  const clientPair = await ask.token({ grant_type: 'client_credentials', ...demo.client });
  const token = clientPair.access_token;
  const login = await ask.token({ grant_type: 'password', ...demo.client, ...demo.supervisor });
  const access = await accessTraffic(instance, token, login.access_token);
  const users = await userTraffic(ask, token);
  const ruleId = await ruleTraffic(ask, token, demo);
  const transactions = await transactionTraffic(ask, instance, token);
  const reference = await referenceTraffic(instance, crowded);
  const cursor = await ask.graphql(
    token,
    `{ accounts(first: ${PAGE}) { pageInfo { endCursor } edges { node { id } } } }`,
  );
  const after = cursor.accounts.pageInfo.endCursor;
  const next = await ask.graphql(token, `{ accounts(first: ${PAGE}, after: "${after}") { edges { node { id } } } }`);
  const file = await halfOfAFile(ask, instance, token);
  const writtenRecords = await records(ask, token);
  // A client's use is saved every two seconds, an audit record later than its answer.
  await context.auditWriter.stop(5_000);
  await until(async () => (await count(instance, 'client_quotas')) > 0);
  const events = await context.database.db
    .unscoped('a fixture')
    .raw<{ seq: string }>((sql) => sql`select seq from node_event_seq where node_id = ${demo.node_id}`);
  await context.outbox.stop();
  await instance.stopConsumers();
  const waitingUser = (await ask.migrate(token, { wallet_address: '0xwaiting', email: 'waiting@example.com' })).json.id;
  await ask.notify({ id: transactions.behindId, status: 3, second: 3 });
  const spooledRecords = await records(ask, token);
  return {
    release,
    atMs: Date.now(),
    texts: TEXTS,
    tables: await tablesOf(instance),
    clientToken: token,
    clientRefreshToken: clientPair.refresh_token,
    loginToken: login.access_token,
    loginRefreshToken: login.refresh_token,
    ...access,
    ...users,
    ruleId,
    ...transactions,
    ...reference,
    accountIds: idsOf(await ask.graphql(token, '{ accounts(first: 100) { edges { node { id } } } }')),
    cursor: { after, next: idsOf(next) },
    eventCursor: String(BigInt(events[0]?.seq ?? '0') - 2n),
    file,
    waitingUser,
    writtenRecords,
    spooledRecords,
  };
}

function idsOf({ accounts }: { accounts: { edges: { node: { id: string } }[] } }): string[] {
  return accounts.edges.map(({ node }) => node.id);
}

/** Holds the lock of a node's counts while `act` runs, where another connection can. */
export type Crowd = (nodeId: string, act: () => Promise<void>) => Promise<void>;

async function accessTraffic({ url, demo }: ReleaseInstance, token: string, loginToken: string) {
  const ask = asking({ url, webhook: '' });
  const created = async (input: object): Promise<ClientCredentials> => {
    const query =
      'mutation ($input: ClientInput!) { createClient(input: $input) { ... on CreatedClient { client { id } clientSecret } } }';
    const { createClient } = await ask.graphql(token, query, { input: { name: TEXTS.name, ...input } });
    return { client_id: createClient.client.id, client_secret: createClient.clientSecret };
  };
  const scopes = ['accounts:read'];
  const grantTypes = ['CLIENT_CREDENTIALS', 'PASSWORD', 'REFRESH_TOKEN'];
  const endless = await created({ grantTypes, scopes, tokenExpiry: { enabled: false, duration: 60 } });
  const limited = await created({
    grantTypes,
    scopes,
    monthlyLimit: 50,
    rateLimit: { requestsPerHour: 40 },
    refreshReuseDetection: true,
  });
  const disabled = await created({
    grantTypes,
    scopes,
    allowedIps: ['127.0.0.1', '2001:db8::/32'],
    requireCertificate: false,
  });
  await ask.graphql(
    token,
    `mutation { setClientStatus(id: "${disabled.client_id}", status: DISABLED) { __typename } }`,
  );
  const limitedPair = await ask.token({ grant_type: 'client_credentials', ...limited });
  const used = 3;
  for (let time = 0; time < used; time += 1) await ask.accounts(limitedPair.access_token);
  await ask.token({ grant_type: 'refresh_token', ...limited, refresh_token: limitedPair.refresh_token });
  const { access_token: revokedToken } = await ask.token({ grant_type: 'client_credentials', ...demo.client });
  await ask.call('POST', '/v2/oauth/revoke', { json: { ...demo.client, token: revokedToken } });
  const endlessToken = (await ask.token({ grant_type: 'client_credentials', ...endless })).access_token;
  const createdSupervisor = { username: 'Ängström@example.com', password: 'correct horse battery staple' };
  const query = 'mutation ($input: SupervisorInput!) { createSupervisor(input: $input) { __typename } }';
  await ask.graphql(loginToken, query, { input: { ...createdSupervisor, role: 'viewer' } });
  const wrong = { grant_type: 'password', ...demo.client, username: 'nobody', password: 'wrong' };
  await ask.call('POST', '/v2/oauth/token', { json: wrong, status: 401 });
  return {
    endlessToken,
    revokedToken,
    disabledClient: disabled,
    createdSupervisor,
    limitedClient: { ...limited, token: limitedPair.access_token, used },
  };
}

async function userTraffic(ask: Asking, token: string) {
  const key = randomUUID();
  const body = JSON.stringify({
    wallet_address: '0xkeyed',
    email: 'Zoë@Example.com',
    name: TEXTS.name,
    surname: TEXTS.surname,
    kyc_sent: true,
  });
  const first = await ask.call('POST', '/v2/users/migrate/with-wallet', {
    token,
    body,
    headers: { 'idempotency-key': key },
    status: 201,
  });
  const forgotten = { wallet_address: '0xforgotten', email: 'forgotten@example.com', name: 'Vergissmeinnicht' };
  const { json: erased } = await ask.migrate(token, forgotten);
  await ask.graphql(token, `mutation { eraseUser(id: "${erased.id}") { __typename } }`);
  const bulkQuery = `mutation ($users: [MigrateUserInput!]!) {
    migrateUsers(users: $users) { ... on Migration { id rows(first: 10) { edges { node { index email status reason } } } } } }`;
  const two = [
    { walletAddress: '0xbulk', externalId: '№ 1', name: '名' },
    { walletAddress: '0xbulk-2', email: 'zoë@example.com' },
    { walletAddress: '0x3' },
  ];
  const { migrateUsers } = await ask.graphql(token, bulkQuery, { users: two });
  return {
    userId: first.json.id as string,
    erased: { userId: erased.id as string, name: forgotten.name },
    keyed: { key, body, answer: first.text },
    bulk: { id: migrateUsers.id as string, rows: migrateUsers.rows.edges },
  };
}

async function ruleTraffic(ask: Asking, token: string, demo: ReleaseInstance['demo']) {
  const rule = (amount: string, name: string) =>
    `{"name":${JSON.stringify(name)},"type":"permissionless_transfer_limit","network_id":"${demo.network_id}",` +
    `"network_currency_id":"${demo.network_currency_id}","permissionless_transfer_limit_rule":` +
    `{"max_amount":${amount},"time_period":"day","time_period_value":1}}`;
  const path = `/v1/wallets/${demo.wallet_id}/rules`;
  const made = await ask.call('POST', path, { token, headers: RULES, body: rule('1', 'first'), status: 201 });
  const location = made.headers.get('location') ?? '';
  await ask.call('PUT', location, { token, headers: RULES, body: rule(TEXTS.amount, TEXTS.name), status: 200 });
  await ask.call('POST', `/v1/wallets/${demo.wallet_id}/networks/${demo.second_network_id}`, {
    token,
    headers: { 'x-target-server': 'wallets' },
  });
  return location.split('/').at(-1) ?? '';
}

async function transactionTraffic(ask: Asking, { demo }: ReleaseInstance, token: string) {
  const [doneId, behindId, parkedId] = [randomUUID(), randomUUID(), randomUUID()];
  const register = 'mutation ($input: RegisterTransactionInput!) { registerTransaction(input: $input) { __typename } }';
  for (const id of [doneId, behindId]) {
    const input = { id, collection: 'TOKEN_TRANSACTIONS', type: 1, assetId: demo.asset_id };
    await ask.graphql(token, register, { input });
  }
  const assetAddress = '0xDeaDBeeF';
  for (const status of [1, 2, 3]) {
    await ask.notify({
      id: doneId,
      status,
      second: status,
      more: { gas_used: literal(TEXTS.gasUsed), contract_address: assetAddress },
    });
  }
  await ask.notify({ id: behindId, status: 1, second: 1 });
  for (const status of [1, 4]) await ask.notify({ id: parkedId, status, second: status, more: { error: TEXTS.error } });
  for (const [id, status] of [
    [doneId, 'DONE'],
    [behindId, 'STARTED'],
  ]) {
    await until(
      async () => (await ask.graphql(token, `{ transaction(id: "${id}") { status } }`)).transaction?.status === status,
    );
  }
  return { doneId, behindId, parkedId, assetAddress };
}

/** Rows of other services: a wallet before its account, an account that is deleted, one that comes while its node's counts are busy. */
async function referenceTraffic({ demo, context }: ReleaseInstance, crowded: Crowd) {
  const at = '2026-11-20T10:00:00.123456Z';
  const publish = (topic: string, key: string, value: object | null) =>
    context.bus.publish([{ topic, key, value: value && Buffer.from(JSON.stringify(value)), headers: {} }]);
  const account = (version: unknown) => ({
    ...{ version, node_id: demo.node_id, name: TEXTS.name, type: 'organisation', status: 7, created_at: at },
  });
  const rows = context.database.db.unscoped('a fixture');
  const [accountId, walletId, orphanOf, deletedAccount] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
  const [demoWallet] = await rows.raw<{ chain_id: string }>(
    (sql) => sql`select chain_id from wallets where id = ${demo.wallet_id}`,
  );
  const wallet = { version: 1, node_id: demo.node_id, account_id: orphanOf, chain_id: demoWallet?.chain_id };
  await publish('reference.accounts', deletedAccount, account(1));
  await publish('reference.accounts', deletedAccount, null);
  await publish('reference.wallets', walletId, { ...wallet, created_at: at });
  await crowded(demo.node_id, async () => {
    await publish('reference.accounts', accountId, account(literal(VERSION)));
    const found = () => rows.raw((sql) => sql`select from accounts where id = ${accountId}`);
    await until(async () => (await found()).length === 1);
  });
  return { parkedWallet: { id: walletId, accountId: orphanOf }, deletedAccount };
}

/** A file of users of which some batches are applied, with failed rows among them, and the rest is not. */
async function halfOfAFile(ask: Asking, { url, context }: ReleaseInstance, token: string) {
  const lines = Array.from({ length: FILE_ROWS }, (_, at) =>
    at % BAD_EVERY === 0 ? ',Zoë,,true' : `0x${at},Zoë,${at}@example.com,true`,
  );
  const form = new FormData();
  const query = 'mutation ($file: File!) { startUserMigration(file: $file) { ... on Migration { id } } }';
  form.set('operations', JSON.stringify({ query, variables: { file: null } }));
  form.set('map', '{"0": ["variables.file"]}');
  form.set(
    '0',
    new Blob([['wallet_address,name,email,kyc_sent', ...lines, ''].join('\n')], { type: 'text/csv' }),
    'users.csv',
  );
  const answer = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
    body: form,
  });
  const { data } = (await answer.json()) as { data: { startUserMigration: { id: string } } };
  const { id } = data.startUserMigration;
  const applied = async () => {
    const { migration } = await ask.graphql(token, `{ migration(id: "${id}") { success failed skipped } }`);
    return migration.success + migration.failed + migration.skipped;
  };
  await until(async () => (await applied()) > 0);
  await context.migrationJobs.stop();
  return { id, rows: FILE_ROWS, failed: FILE_ROWS / BAD_EVERY, applied: await applied() };
}

/** Requests with correlation ids of their own. */
async function records(ask: Asking, token: string): Promise<string[]> {
  const ids = Array.from({ length: SPOOLED }, () => randomUUID());
  for (const id of ids)
    await ask.accounts(token, { 'x-correlation-id': id, 'user-agent': TEXTS.name.replace(/[^ -~]/g, '?') });
  return ids;
}

interface CallOptions {
  token?: string;
  headers?: Record<string, string>;
  json?: unknown;
  body?: string;
  status?: number;
}

type Asking = ReturnType<typeof asking>;

function asking({ url, webhook }: Pick<ReleaseInstance, 'url' | 'webhook'>) {
  const call = async (method: string, path: string, { token, headers = {}, json, body, status }: CallOptions = {}) => {
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(json === undefined && body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      body: body ?? (json === undefined ? null : JSON.stringify(json)),
    });
    const text = await answer.text();
    const isWanted = status === undefined ? answer.ok : answer.status === status;
    if (!isWanted) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return { headers: answer.headers, text, json: text === '' ? undefined : JSON.parse(text) };
  };
  return {
    call,
    token: async (grant: object) => (await call('POST', '/v2/oauth/token', { json: grant })).json,
    graphql: async (token: string, query: string, variables?: object) => {
      const { json, text } = await call('POST', '/graphql', { token, json: { query, variables } });
      if (json.errors) throw new Error(text);
      return json.data;
    },
    accounts: (token: string, headers: Record<string, string> = {}) =>
      call('GET', '/v1/accounts?limit=10&page=1', { token, headers: { 'x-target-server': 'accounts', ...headers } }),
    migrate: (token: string, json: object) =>
      call('POST', '/v2/users/migrate/with-wallet', { token, json, status: 201 }),
    notify: ({ id, status, second, more = {} }: { id: string; status: number; second: number; more?: object }) => {
      const at = (seconds: number) => new Date(Date.UTC(2026, 10, 20) + seconds * 1_000).toISOString();
      const body = {
        id,
        type: 1,
        status,
        created_at: at(0),
        updated_at: at(second),
        transaction_hash: `0x${id}`,
        ...more,
      };
      return call('POST', '/v2/webhooks/custodial', { headers: { authorization: webhook }, json: body });
    },
  };
}

/** How many rows each table has; a partition's count with its parent. */
async function tablesOf({ context }: ReleaseInstance): Promise<Record<string, number>> {
  const door = context.database.db.unscoped('a fixture');
  const tables = await door.raw<{ name: string }>(
    (sql) => sql`select relname as name from pg_class
    where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition order by 1`,
  );
  const names = tables.map(({ name }) => name);
  return Object.fromEntries(
    await Promise.all(names.map(async (name) => [name, await count({ context }, name)] as const)),
  );
}

async function count({ context }: Pick<ReleaseInstance, 'context'>, table: string): Promise<number> {
  const text = [`select count(*) as count from ${table}`] as unknown as TemplateStringsArray;
  const [row] = await context.database.db.unscoped('a fixture').raw<{ count: string }>((sql) => sql(text));
  return Number(row?.count);
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  for (let time = 0; time < 1_200; time += 1) {
    if (await holds()) return;
    await delay(50);
  }
  throw new Error(`after a minute it does not hold: ${holds}`);
}

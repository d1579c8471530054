import { setTimeout as sleep } from 'node:timers/promises';
import {
  buildSchema,
  type GraphQLField,
  type GraphQLNamedType,
  getNamedType,
  isInputObjectType,
  isInterfaceType,
  isLeafType,
  isObjectType,
  isRequiredArgument,
  isUnionType,
} from 'graphql';
import { schemaFile } from './coverage.ts';
import type { Messages, Recorder } from './recorder.ts';
import type { Callers } from './rest-cases.ts';
import { basic, CONSOLE, DEMO, forged, JWT_SECRETS, NOBODY, spoilt, WEBHOOK } from './values.ts';

const schema = buildSchema(schemaFile('schema.graphql'));
type Field = GraphQLField<unknown, unknown>;
type Variables = Record<string, unknown>;

/** What is when somebody happens to look. */
const PASSING = new Set(['lastUsedAt']);

/** What a type has, objects in it down to a depth, lists by their first three. */
function selection(type: GraphQLNamedType, depth: number): string {
  if (isUnionType(type))
    return `{ __typename ${type
      .getTypes()
      .map((one) => `... on ${one.name} ${selection(one, depth)}`)
      .join(' ')} }`;
  if (!isObjectType(type) && !isInterfaceType(type)) return '';
  const fields = Object.values(type.getFields()).flatMap((field) => {
    const of = getNamedType(field.type);
    if (PASSING.has(field.name) || field.args.some(isRequiredArgument)) return [];
    if (isLeafType(of)) return [field.name];
    const isWrapper = /(?:Connection|Edge|Error)$/.test(type.name) || ['PageInfo', 'InputIssue'].includes(of.name);
    if (depth === 0 && !isWrapper) return [];
    const page = field.args.some(({ name }) => name === 'first') ? '(first: 3)' : '';
    return [`${field.name}${page} ${selection(of, isWrapper ? depth : depth - 1)}`];
  });
  return `{ ${fields.join(' ')} }`;
}

/** An operation for a field, whose arguments are variables of the same names. */
function operation(kind: string, field: Field, given: Variables, depth = 1): string {
  const args = field.args.filter(({ name }) => name in given);
  const declared = args.map(({ name, type }) => `$${name}: ${type}`).join(', ');
  const passed = args.map(({ name }) => `${name}: $${name}`).join(', ');
  const head = declared === '' ? kind : `${kind} (${declared})`;
  return `${head} { ${field.name}${passed === '' ? '' : `(${passed})`} ${selection(getNamedType(field.type), depth)} }`;
}

/** What single things are asked for by. */
function idsOf(name: string, made: Made): string[] {
  const own: Record<string, string> = {
    account: DEMO.account_id,
    asset: DEMO.asset_id,
    client: DEMO.client.client_id,
    migration: made.migration,
    transaction: DEMO.transactions.token_transactions,
    user: DEMO.user_id,
    wallet: DEMO.wallet_id,
    walletRule: made.rule,
  };
  return [own[name] ?? NOBODY, NOBODY, 'x', '', DEMO.other_node.wallet_id, DEMO.other_node.account_id, '\0'];
}

const FILTERS: Record<string, unknown[]> = {
  includeDeleted: [true, false, null, 'x'],
  search: ['cust', 'ADA', '%', '', 'x'.repeat(300), '\0', null],
  status: [1, 3, 99, 'DONE', 'x', null],
  type: ['organisation', 'x', 1, 999, 2 ** 31],
  kycVerified: [true, false],
  accountId: [DEMO.account_id, DEMO.other_node.account_id, 'x'],
  networkId: [DEMO.network_id, NOBODY, 'x'],
  collection: ['NODE_TRANSACTIONS', 'x'],
  updatedSince: ['2025-03-01T10:32:00Z', 'x', 5],
  correlationId: ['my-id', ''],
  method: ['PUT', 'get'],
  path: ['/v1/accounts', 'x'],
  statusCode: [409, 0],
  since: ['2100-01-01T00:00:00Z', 'x'],
  until: ['2000-01-01T00:00:00Z'],
};

const PREVIEW_RULE = {
  name: 'Top up',
  type: 'auto_transfer',
  networkId: DEMO.network_id,
  networkCurrencyId: DEMO.network_currency_id,
  autoTransferRule: {
    type: 'auto',
    ruleLogic: { field: 'balance', op: 'lt', value: '100.5', network_currency_id: DEMO.network_currency_id },
    amount: '50',
    targetWalletId: DEMO.target_wallet_id,
  },
};
const PREVIEW = {
  rule: PREVIEW_RULE,
  balances: [{ field: 'balance', networkCurrencyId: DEMO.network_currency_id, value: '99.9' }],
  transfers: [{ amount: '1', at: '2025-01-01T00:00:00Z', networkCurrencyId: DEMO.network_currency_id }],
  at: '2025-01-01T12:00:00Z',
};

/** Ids of what was made on the way. */
interface Made {
  migration: string;
  rule: string;
  client: string;
  supervisor: string;
}

export async function graphqlCases(r: Recorder, callers: Callers): Promise<void> {
  const { token } = callers;
  const first = async (name: string, field: string) => {
    const { json } = await r.graphql(name, `{ ${field} { edges { node { id } } } }`, { token });
    return json.data[field.replace(/\(.*/, '')].edges[0].node.id as string;
  };
  const rule = await first('a rule', `walletRules(walletId: "${DEMO.wallet_id}", first: 1)`);
  const migration = await first('a migration', 'migrations(last: 1)');
  const made = { rule, migration, client: NOBODY, supervisor: NOBODY };
  await queries(r, callers, made);
  await mutations(r, callers, made);
  await requests(r, callers);
  await subscriptions(r, callers, made);
  await sockets(r, callers);
}

async function queries(r: Recorder, callers: Callers, made: Made): Promise<void> {
  const { token, login, poor, neighbour } = callers;
  let foreign = 'x';
  for (const field of Object.values(schema.getQueryType()?.getFields() ?? {})) {
    const { name } = field;
    r.operations.add(`Query.${name}`);
    const required: Record<string, Variables> = {
      walletRules: { walletId: DEMO.wallet_id },
      walletRuleVersions: { ruleId: made.rule },
      previewWalletRule: { input: PREVIEW },
      previewWallet: { walletId: DEMO.wallet_id, facts: { balances: PREVIEW.balances } },
    };
    const needed = required[name] ?? {};
    const byId = field.args.length === 1 && field.args[0]?.name === 'id';
    const isList = field.args.some(({ name: arg }) => arg === 'first');
    // Of all records there would be one more for each look.
    const filter = name === 'auditRecords' ? { filter: { path: '/v2/blockchain/gas-fee' } } : {};
    const good: Variables = { ...needed, ...filter, ...(byId && { id: idsOf(name, made)[0] }) };
    const ask = (what: string, variables: Variables, asker: string | undefined = token, depth = 1) =>
      r.graphql(`query ${name} ${what}`, operation('query', field, variables, depth), { token: asker, variables });
    await ask('good', good, token, 2);
    await ask('of a login', good, login);
    await r.graphql(`query ${name} without a token`, operation('query', field, good), { variables: good });
    await ask('without permission', good, poor);
    await ask('of another node', good, neighbour);
    await ask('of a legacy token', good, forged({ scope: 'accounts:read' }, JWT_SECRETS.legacy), 0);
    await r.graphql(`query ${name} of an unknown field`, `{ ${name} { nothing } }`, { token });
    await r.graphql(`query ${name} with an unknown argument`, `{ ${name}(nothing: 1) }`, { token });
    if (byId) for (const id of idsOf(name, made).slice(1)) await ask(`id ${id}`, { id });
    if (byId) await r.graphql(`query ${name} without its id`, `{ ${name} { __typename } }`, { token });
    if (!isList) continue;
    const page = (await ask('first 2', { ...good, first: 2 })).json.data?.[name];
    const cursor = page?.pageInfo.endCursor;
    const pages: Variables[] = [
      { first: 2, after: cursor },
      { last: 2 },
      { last: 2, before: cursor },
      { first: 1, after: cursor, before: cursor },
      { first: 0 },
      { first: 100 },
      { first: 101 },
      { first: -1 },
      { last: 101 },
      { first: 1, last: 1 },
      { first: 'x' },
      { after: 'x' },
      { after: foreign },
      { before: `AAAA${cursor?.slice(4)}` },
      { after: '' },
    ];
    for (const [index, variables] of pages.entries())
      await ask(`page ${index} ${Object.keys(variables)}`, { ...good, ...variables }, token, 0);
    foreign = cursor ?? foreign;
    const type = getNamedType(field.args.find(({ name: arg }) => arg === 'filter')?.type);
    if (!isInputObjectType(type)) continue;
    for (const member of Object.keys(type.getFields())) {
      for (const value of FILTERS[member] ?? []) {
        const what = `filter ${member} ${JSON.stringify(value)?.slice(0, 40)}`;
        await ask(what, { ...good, filter: { ...filter.filter, [member]: value } }, token, 0);
      }
    }
  }
  const preview = schema.getQueryType()?.getFields().previewWalletRule;
  if (!preview) throw new Error('there is no previewWalletRule');
  const rows = [...spoilt({ ...PREVIEW, ruleId: made.rule, rule: undefined }), ...spoilt(PREVIEW)];
  for (const [index, [what, input]] of rows.entries()) {
    const options = { token, variables: { input } };
    await r.graphql(`preview ${index} ${what}`, operation('query', preview, { input }), options);
  }
  await r.graphql(
    'every list of a wallet',
    `{ wallets(first: 2) { totalCount edges { node { account { name wallets(first: 1) { totalCount edges { node { id networks(last: 1) { totalCount edges { node { name } } } rules(first: 2) { totalCount edges { cursor node { name } } } } } } } } } } }`,
    { token },
  );
}

const CLIENT_INPUT = {
  name: 'Made',
  grantTypes: ['CLIENT_CREDENTIALS'],
  scopes: ['accounts:read'],
  allowedIps: ['203.0.113.0/24'],
  certFingerprint: 'AA:BB'.padEnd(95, ':CC'),
  monthlyLimit: 5,
  refreshReuseDetection: true,
  requireCertificate: false,
  rateLimit: { requestsPerHour: 3, requestsPerMinute: 2, requestsPerSecond: 1 },
  tokenExpiry: { duration: 60, enabled: true },
};

/** Each mutation, in an order in which each finds what it needs. */
function mutationInputs(made: Made): [name: string, variables: Variables][] {
  return [
    ['createClient', { input: CLIENT_INPUT }],
    ['updateClient', { id: made.client, input: CLIENT_INPUT }],
    ['patchClient', { id: made.client, input: { name: 'Renamed', monthlyLimit: 0 } }],
    ['rotateClientSecret', { id: made.client, overlapSeconds: 60 }],
    ['setClientStatus', { id: made.client, status: 'DISABLED' }],
    ['createSupervisor', { input: { username: 'carol', password: 'password-of-carol', role: 'viewer' } }],
    ['setSupervisorRole', { id: made.supervisor, role: 'operator' }],
    ['setSupervisorPassword', { id: made.supervisor, password: 'another-password' }],
    ['unlockSupervisor', { id: made.supervisor }],
    ['revokeSessions', { supervisorId: made.supervisor }],
    ['setSupervisorStatus', { id: made.supervisor, status: 'DISABLED' }],
    ['createWalletRule', { walletId: DEMO.wallet_id, input: PREVIEW_RULE }],
    ['replaceWalletRule', { walletId: DEMO.wallet_id, id: made.rule, ifVersion: 999, input: PREVIEW_RULE }],
    ['setWalletRuleStatus', { id: made.rule, status: 'DISABLED' }],
    ['assignNetwork', { walletId: DEMO.target_wallet_id, networkId: DEMO.network_id }],
    [
      'registerTransaction',
      { input: { id: 'parked-1', collection: 'NODE_TRANSACTIONS', type: 1, assetId: DEMO.asset_id } },
    ],
    [
      'migrateUser',
      {
        input: {
          walletAddress: '0xgraphql',
          email: 'g@example.com',
          externalId: 'g-1',
          name: 'G',
          surname: 'Q',
          kycSent: true,
        },
      },
    ],
    ['migrateUsers', { users: [{ walletAddress: '0xgraphql2', externalId: 'g-2' }, { walletAddress: '0xgraphql3' }] }],
    ['cancelUserMigration', { id: made.migration }],
    ['eraseUser', { id: DEMO.user_id }],
    ['startUserMigration', { file: null }],
  ];
}

async function mutations(r: Recorder, callers: Callers, made: Made): Promise<void> {
  const { token, login, poor, neighbour } = callers;
  const fields = schema.getMutationType()?.getFields() ?? {};
  for (const name of mutationInputs(made).map(([one]) => one)) {
    const field = fields[name];
    const variables = new Map(mutationInputs(made)).get(name);
    if (!field || !variables) throw new Error(`there is no mutation ${name}`);
    r.operations.add(`Mutation.${name}`);
    const ask = (what: string, given: Variables, asker: string | undefined = token) =>
      r.graphql(`mutation ${name} ${what}`, operation('mutation', field, given), { token: asker, variables: given });
    await r.graphql(`mutation ${name} without a token`, operation('mutation', field, variables), { variables });
    await ask('without permission', variables, poor);
    await ask('of another node', variables, neighbour);
    // Once it is done: what is spoilt is so beside what is there.
    const [first] = [(await ask('good', variables)).json?.data?.[name]];
    await ask('again', variables, login);
    made.client = first?.client?.id ?? made.client;
    if (name === 'createSupervisor') made.supervisor = first?.id ?? made.supervisor;
    if (name === 'eraseUser' || name === 'startUserMigration') continue;
    for (const [what, given] of spoilt({ ...variables })) await ask(what, given);
  }
  const { replaceWalletRule, eraseUser } = fields;
  if (!replaceWalletRule || !eraseUser) throw new Error('a mutation has gone');
  const more: [what: string, field: Field, variables: Variables][] = [
    ['of any version', replaceWalletRule, { walletId: DEMO.wallet_id, id: made.rule, input: PREVIEW_RULE }],
    ...[NOBODY, 'x', DEMO.other_node.wallet_id].map((id): [string, Field, Variables] => [id, eraseUser, { id }]),
  ];
  for (const [what, field, variables] of more)
    await r.graphql(`mutation ${field.name} ${what}`, operation('mutation', field, variables), { token, variables });
}

/** How operations come: methods, types, batches, limits, forms, persisted ones, pages. */
async function requests(r: Recorder, { token }: Callers): Promise<void> {
  const me = '{ me { nodeId tokenUse permissions clientId subject expiresAt } }';
  const type = { 'content-type': 'application/json' };
  const get = (name: string, query: Record<string, string>, headers = {}) =>
    r.call(`get ${name}`, 'GET', `/graphql?${new URLSearchParams(query)}`, { token, headers });
  await get('a query', { query: me });
  await get('a mutation', { query: 'mutation { eraseUser(id: "x") { __typename } }' });
  await get('variables', { query: 'query ($n: Int) { accounts(first: $n) { totalCount } }', variables: '{"n":1}' });
  await get('broken variables', { query: me, variables: '{' });
  await get('nothing', {});
  await get('a name', { query: 'query A { me { nodeId } } query B { me { subject } }', operationName: 'B' });
  await get('no name', { query: 'query A { me { nodeId } } query B { me { subject } }' });
  for (const accept of [
    'application/json',
    'application/graphql-response+json',
    'text/html',
    'text/event-stream',
    'image/png',
    '*/*',
    'application/*',
  ]) {
    for (const [what, query] of Object.entries({
      good: me,
      bad: '{',
      unknown: '{ nothing }',
      fails: '{ account(id: "x") { id } }',
    })) {
      await r.graphql(`accept ${accept} ${what}`, query, { token, headers: { accept } });
    }
    await r.call(`page for ${accept}`, 'GET', '/graphql', { headers: { accept } });
  }
  await r.call('graphiql with a token', 'GET', '/graphql', { token, headers: { accept: 'text/html' } });
  for (const method of ['PUT', 'DELETE', 'HEAD', 'OPTIONS'])
    await r.call(`graphql as ${method}`, method, '/graphql', { token });
  const bodies: Record<string, { body?: string | Buffer; json?: unknown; headers?: Record<string, string> }> = {
    'no JSON': { body: '{', headers: type },
    'no type': { body: '{}' },
    'another type': { body: 'query=x', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
    'application/graphql': { body: me, headers: { 'content-type': 'application/graphql' } },
    'no UTF-8': { body: Buffer.from('{"query":"\xff"}', 'latin1'), headers: type },
    null: { json: null },
    text: { json: 'x' },
    'no query': { json: {} },
    'a query of another type': { json: { query: 5 } },
    'variables of another type': { json: { query: me, variables: [] } },
    'an unknown name': { json: { query: me, operationName: 'X' } },
    'an unknown member': { json: { query: me, nothing: 1 } },
    'an empty batch': { json: [] },
    'a batch': { json: [{ query: me }, { query: '{ nothing }' }, { query: '{ accounts(first: 1) { totalCount } }' }] },
    'a batch of 11': { json: Array.from({ length: 11 }, () => ({ query: me })) },
    'a batch with a subscription': { json: [{ query: 'subscription { transactionUpdates { cursor } }' }] },
    'a batch with nothing': { json: [null, 1] },
    'too deep': {
      json: {
        query: `{ wallets ${'{ edges { node { account { wallets '.repeat(5)}{ totalCount }${' } } } }'.repeat(5)} }`,
      },
    },
    'many aliases': {
      json: { query: `{ ${Array.from({ length: 31 }, (_, index) => `a${index}: me { nodeId }`).join(' ')} }` },
    },
    'many directives': { json: { query: `{ me ${'@include(if: true) '.repeat(10)} { nodeId } }` } },
    'many repeats': { json: { query: `{ ${'me { nodeId } '.repeat(31)} }` } },
    'a high cost': {
      json: { query: '{ accounts(first: 100) { edges { node { wallets(first: 100) { edges { node { id } } } } } } }' },
    },
    'wide variables': {
      json: { query: me, variables: Object.fromEntries(Array.from({ length: 1001 }, (_, index) => [`v${index}`, 1])) },
    },
    'deep JSON': {
      body: `{"query":"{ me { nodeId } }","variables":${'['.repeat(20_001)}${']'.repeat(20_001)}}`,
      headers: type,
    },
    'a fragment': { json: { query: 'query { ...f } fragment f on Query { me { nodeId } }' } },
    'a cycle of fragments': { json: { query: '{ ...f } fragment f on Query { ...f }' } },
    'an introspection': {
      json: {
        query:
          '{ __schema { queryType { name } types { name kind } } __type(name: "Account") { fields { name description } } }',
      },
    },
    __typename: { json: { query: '{ __typename }' } },
    'a skip': { json: { query: '{ me @skip(if: true) { nodeId } __typename }' } },
    'an id alone': { json: { documentId: 'sha256:x' } },
    'a hash alone': { json: { extensions: { persistedQuery: { version: 1, sha256Hash: 'a'.repeat(64) } } } },
    'a wrong hash': { json: { query: me, extensions: { persistedQuery: { version: 1, sha256Hash: 'a'.repeat(64) } } } },
    'a suggestion': { json: { query: '{ acount(id: "x") { id } }' } },
    'a secret in a document': {
      json: {
        query:
          'mutation { createSupervisor(input: {username: "x", password: "secret", role: "viewer"}) { __typename } }',
      },
    },
  };
  for (const [what, options] of Object.entries(bodies))
    await r.call(`graphql ${what}`, 'POST', '/graphql', { token, ...options });
  await r.call('graphql without token and type', 'POST', '/graphql', { body: me });
  await r.graphql('graphql of a broken token', me, { token: 'x' });
  await r.graphql('graphql for another service', me, { token, headers: { 'x-target-server': 'accounts' } });
  await r.graphql('graphql of an origin', me, { token, headers: { origin: CONSOLE } });
  const head = `POST /graphql HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nConnection: close`;
  await r.raw('graphql declared too long', `${head}\r\nContent-Length: 3000000\r\n\r\n`);
  await uploads(r, token);
}

const UPLOAD =
  'mutation ($file: File!) { startUserMigration(file: $file) { __typename ... on Migration { id total status success failed skipped } ... on Error { message } ... on ValidationError { issues { path message } } } }';

/** A form as the GraphQL multipart request specification has it. */
function formOf(parts: Record<string, string>): { body: string; headers: Record<string, string> } {
  const body = Object.entries(parts).map(([name, value]) => {
    const file = name === '0' ? '; filename="users.csv"\r\nContent-Type: text/csv' : '';
    return `--edge\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n${value}\r\n`;
  });
  return { body: `${body.join('')}--edge--\r\n`, headers: { 'content-type': 'multipart/form-data; boundary=edge' } };
}

async function uploads(r: Recorder, token: string): Promise<void> {
  const operations = JSON.stringify({ query: UPLOAD, variables: { file: null } });
  const map = '{"0": ["variables.file"]}';
  const csv =
    'wallet_address,email,external_id,kyc_sent\n0xcsv1,csv@example.com,,true\n0xcsv2,,,\n0xcsv3,a,b\n"0xcsv4",,csv-4,x\n';
  const forms: Record<string, Record<string, string>> = {
    good: { operations, map, 0: csv },
    'without a header': { operations, map, 0: 'x,y\n1,2\n' },
    empty: { operations, map, 0: '' },
    'without a map': { operations, 0: csv },
    'without operations': { map, 0: csv },
    'without a file': { operations, map },
    'in another order': { map, operations, 0: csv },
    'with a broken map': { operations, map: '{', 0: csv },
    'with another path': { operations, map: '{"0": ["variables.x"]}', 0: csv },
    'with a batch': { operations: `[${operations}]`, map, 0: csv },
  };
  for (const [what, parts] of Object.entries(forms)) {
    const { json } = await r.call(`upload ${what}`, 'POST', '/graphql', { token, ...formOf(parts) });
    const id = json?.data?.startUserMigration?.id;
    if (!id) continue;
    const ofIt = `migration(id: "${id}")`;
    await r.until(token, `{ ${ofIt} { finishedAt } }`, ({ migration }) => migration.finishedAt !== null);
    const rows = 'rows(first: 9) { edges { node { index status reason email externalId } } }';
    const after = `{ ${ofIt} { status total success skipped failed ${rows} } }`;
    await r.graphql(`upload ${what} afterwards`, after, { token });
  }
  await r.call('upload without a token', 'POST', '/graphql', formOf({ operations, map, 0: csv }));
}

const UPDATES =
  'subscription ($after: String, $filter: TransactionFilter) { transactionUpdates(after: $after, filter: $filter) { event cursor previousStatus correlationId transaction { id status transactionHash } } }';
const ONE = 'subscription ($id: ID!) { transaction(id: $id) { id status conflict transactionHash gasUsed typeName } }';
const PROGRESS =
  'subscription ($id: ID!) { migrationProgress(id: $id) { done processed total success skipped failed migration { status } } }';

async function subscriptions(r: Recorder, { token, poor, neighbour, login }: Callers, made: Made): Promise<void> {
  for (const field of ['transactionUpdates', 'transaction', 'migrationProgress'])
    r.operations.add(`Subscription.${field}`);
  const json = (query: string, variables: object) => ({ json: { query, variables } });
  const id = DEMO.transactions.token_transactions;
  const whole = { id };
  const cases: [name: string, asker: string | undefined, document: string, variables: object, events: number][] = [
    ['updates from the first', token, UPDATES, { after: '0' }, 8],
    [
      'updates of a filter',
      login,
      UPDATES,
      { after: '0', filter: { collection: 'OTC_TRANSACTIONS', status: 'DONE' } },
      1,
    ],
    ['updates after nothing good', token, UPDATES, { after: 'x' }, 2],
    ['updates without permission', poor, UPDATES, {}, 2],
    ['updates without a token', undefined, UPDATES, {}, 2],
    ['one that is done', token, ONE, whole, 2],
    ['one of nobody', token, ONE, { id: 'unknown' }, 2],
    ['one of another node', neighbour, ONE, whole, 2],
    ['progress that is done', token, PROGRESS, { id: made.migration }, 2],
    ['progress of nobody', token, PROGRESS, { id: NOBODY }, 2],
    ['a query', token, '{ me { nodeId } }', {}, 2],
    ['an unknown field', token, 'subscription { nothing }', {}, 2],
  ];
  for (const [name, asker, document, variables, events] of cases) {
    await r.stream(`stream ${name}`, { token: asker, ...json(document, variables) }, { events });
  }
  const resumed = { token, ...json(UPDATES, {}), headers: { 'last-event-id': '3' } };
  await r.stream('stream from a last event', resumed, { events: 3 });
  const wanted = 'live-1';
  await r.graphql(
    'register for a stream',
    `mutation { registerTransaction(input: { id: "${wanted}", collection: USER_TRANSACTIONS, type: 1 }) { __typename } }`,
    { token },
  );
  await r.stream(
    'stream as it happens',
    { token, ...json(ONE, { id: wanted }) },
    { events: 4, during: [1, () => notify(r, wanted, [1, 3], token)] },
  );
}

/** Longer than anything takes that is begun already. */
function pause(): Promise<void> {
  return sleep(300);
}

/** Tells of a transaction, and waits until each status is seen. */
async function notify(r: Recorder, id: string, statuses: readonly number[], token: string): Promise<void> {
  const names = ['', 'STARTED', 'IN_PROGRESS', 'DONE', 'ERROR', 'PENDING_RECEIPT'];
  for (const status of statuses) {
    const json = {
      id,
      type: 1,
      status,
      transaction_hash: '0x1',
      created_at: '2025-03-01T10:30:00Z',
      updated_at: `2025-03-01T11:0${status}:00Z`,
    };
    const authorization = basic(WEBHOOK.username, WEBHOOK.password);
    await r.call(`notify ${id} ${status}`, 'POST', '/v2/webhooks/custodial', { json, headers: { authorization } });
    await r.until(
      token,
      `{ transaction(id: "${id}") { status } }`,
      (data) => data.transaction.status === names[status],
    );
    await pause();
  }
}

async function sockets(r: Recorder, { token, poor, neighbour }: Callers): Promise<void> {
  const init = (with_: string) => ({ type: 'connection_init', payload: { Authorization: `Bearer ${with_}` } });
  const subscribe = (id: string, query: string, variables = {}) => ({
    id,
    type: 'subscribe',
    payload: { query, variables },
  });
  const me = subscribe('1', '{ me { nodeId } }');
  const bare = { type: 'connection_init' };
  const after = (message: string | object): Messages => [
    [init(token), 1],
    [message, 1],
  ];
  const tokenless: Messages = [
    [bare, 1],
    [me, 2],
  ];
  await r.socket('socket of no protocol', [], { protocol: '' });
  await r.socket('socket of another protocol', [], { protocol: 'graphql-ws' });
  await r.socket('socket for another service', [], { headers: { 'x-target-server': 'accounts' } });
  await r.socket('socket with a broken token', [[init('x'), 1]]);
  await r.socket('socket without a token', tokenless);
  await r.socket('socket with a header', tokenless, { headers: { authorization: `Bearer ${token}` } });
  await r.socket('socket without init', [[me, 1]]);
  await r.socket('socket of two inits', after(init(token)));
  await r.socket('socket of no JSON', [['x', 1]]);
  await r.socket('socket of an unknown message', after({ type: 'x' }));
  await r.socket('socket that pings', after({ type: 'ping', payload: { a: 1 } }));
  await r.socket('socket of a long frame', after(`"${'x'.repeat(70_000)}"`));
  for (const [what, asker] of Object.entries({ good: token, poor, neighbour })) {
    await r.socket(`socket ${what}`, [
      [init(asker), 1],
      [subscribe('1', '{ me { nodeId permissions } }'), 2],
      [subscribe('2', '{ accounts(first: 1) { totalCount edges { node { name } } } }'), 2],
      [subscribe('3', `mutation { eraseUser(id: "${NOBODY}") { __typename ... on Error { message } } }`), 2],
      [subscribe('4', '{ nothing }'), 1],
      [subscribe('5', ONE, { id: DEMO.transactions.node_transactions }), 2],
      [subscribe('6', PROGRESS, { id: NOBODY }), 1],
      [subscribe('7', UPDATES, { after: 'x' }), 1],
    ]);
  }
  await r.graphql(
    'register for a socket',
    'mutation { registerTransaction(input: { id: "live-2", collection: USER_TRANSACTIONS, type: 2 }) { __typename } }',
    { token },
  );
  await r.socket('socket as it happens', [
    [init(token), 1],
    [subscribe('1', ONE, { id: 'live-2' }), 4, () => pause().then(() => notify(r, 'live-2', [2, 4], token))],
    // It hears of nothing, so that nothing can come between its end and what has its id next.
    [subscribe('2', UPDATES, { filter: { type: 12_345 } }), 0, pause],
    [{ id: '2', type: 'complete' }, 0, pause],
    [subscribe('2', '{ me { nodeId } }'), 2],
    [subscribe('3', UPDATES, { filter: { type: 12_345 } }), 0, pause],
    [subscribe('3', UPDATES), 1],
  ]);
}

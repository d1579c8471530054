import {
  type GraphQLField,
  type GraphQLInputType,
  type GraphQLObjectType,
  getNamedType,
  isNonNullType,
  isObjectType,
  isUnionType,
} from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PERMISSIONS, type Permission } from '../../src/access/identity/permissions.rules.ts';
import { graphqlSchema } from '../../src/app/graphql-schema.ts';
import { type Fixture, NODE, startFixture } from '../support/graphql/fixture.ts';
import { openSocket } from '../support/graphql/sockets.ts';
import { filePart, formHeaders, formOf, mapPart, operationsPart } from '../support/graphql/upload-requests.ts';
import { inTurn } from '../support/harness/in-turn.ts';

// Whoever adds a type or a root field says here what it needs; null: any token. A connection and its edges need the same.
const OF_TYPE = byName<Permission | null>([
  [null, 'Viewer GasFee PriorityFee Network NetworkCurrency Attention AttentionSeen Activity SearchHit'],
  ['accounts:read', 'Account'],
  ['wallets:read', 'Wallet'],
  [
    'wallet-rules:read',
    'WalletRule WalletRuleVersion WalletRulePreview WalletPreview WalletPreviewRule WalletRuleExplanation WalletRuleWarning',
  ],
  ['wallet-rules:read', 'AutoTransferRule SignAndApproveRule PermissionlessTransferLimitRule'],
  ['users:read', 'User Kyc ErasureReceipt ErasureSeal Migration MigrationRow MigrationProgress'],
  ['tokens:read', 'Asset'],
  ['transactions:read', 'Transaction TransactionEvent TransactionUpdate TransactionStat'],
  ['clients:manage', 'Client TokenExpiry RateLimit Supervisor'],
  ['audit:read', 'AuditRecord AttemptedSignIn AuditExport'],
]);
const OF_MUTATION = byName<Permission | null>([
  ['wallet-rules:write', 'createWalletRule replaceWalletRule setWalletRuleStatus'],
  ['wallets:write', 'assignNetwork'],
  ['users:migrate', 'migrateUser migrateUsers startUserMigration cancelUserMigration'],
  ['users:erase', 'eraseUser'],
  ['transactions:write', 'registerTransaction'],
  [
    'clients:manage',
    'createClient updateClient patchClient rotateClientSecret setClientStatus createSupervisor setSupervisorStatus',
  ],
  ['clients:manage', 'setSupervisorPassword setSupervisorRole unlockSupervisor revokeSessions'],
  ['audit:read', 'requestAuditExport'],
  [null, 'changeOwnPassword endOwnSessions markSeen'],
]);

function byName<Needed>(rows: [needed: Needed, names: string][]): Record<string, Needed> {
  return Object.fromEntries(rows.flatMap(([needed, names]) => names.split(' ').map((name) => [name, needed])));
}

function needOf(type: string): Permission | null | undefined {
  return OF_TYPE[type.replace(/(?:Connection|Edge)$/, '')];
}

/** Dependencies of what other types are reached through: they have nothing of their own. Whoever adds a field says so here. */
const SHARED: Record<string, string> = {
  PageInfo: 'endCursor hasNextPage hasPreviousPage startCursor',
  InputIssue: 'message path',
  ValidationError: 'issues message',
  NotFoundError: 'message',
  ForbiddenError: 'message permission',
  DuplicateError: 'message reason',
  PreconditionError: 'message',
  // Of mutations alone.
  CreatedClient: 'client clientSecret',
};

const RULE =
  '{name: "x", type: "permissionless_transfer_limit", networkId: "x", networkCurrencyId: "x", permissionlessTransferLimitRule: {maxAmount: 1, timePeriod: "day", timePeriodValue: 1}}';

const ARGUMENTS: Record<string, string> = {
  'Query.account': '(id: "ACCOUNT")',
  'Query.search': '(search: "x")',
  'Query.wallet': '(id: "WALLET")',
  'Query.walletRules': '(walletId: "WALLET")',
  'Query.walletRule': '(id: "STORED")',
  'Query.walletRuleVersions': '(ruleId: "STORED")',
  'Query.previewWalletRule': `(input: {balances: [], rule: ${RULE.replaceAll('d: "x"', `d: "${'0'.repeat(8)}-0000-0000-0000-${'0'.repeat(12)}"`)}})`,
  'Query.transactionStats': '(since: "2026-01-01T00:00:00Z", until: "2026-01-02T00:00:00Z", bucket: DAY)',
  'Query.previewWallet': '(walletId: "WALLET", facts: {balances: []})',
  'Mutation.createWalletRule': `(walletId: "x", input: ${RULE})`,
  'Mutation.replaceWalletRule': `(walletId: "x", id: "x", input: ${RULE})`,
  'Mutation.setWalletRuleStatus': '(id: "x", status: ACTIVE)',
  'Mutation.assignNetwork': '(walletId: "x", networkId: "x")',
  'Query.user': '(id: "x")',
  'Query.migration': '(id: "x")',
  'Query.asset': '(id: "ASSET")',
  'Query.auditExport': '(id: "x")',
  'Mutation.requestAuditExport': '(filter: {})',
  'Mutation.migrateUser': '(input: {walletAddress: "x"})',
  'Mutation.migrateUsers': '(users: [{walletAddress: "x"}])',
  'Mutation.startUserMigration': '(file: $file)',
  'Mutation.cancelUserMigration': '(id: "x")',
  'Subscription.migrationProgress': '(id: "x")',
  'Mutation.eraseUser': '(id: "x")',
  'Query.transaction': '(id: "tx")',
  'Subscription.transaction': '(id: "tx")',
  'Query.client': '(id: "x")',
  'Query.supervisor': '(id: "x")',
  'Mutation.createClient': '(input: {name: "x", grantTypes: [PASSWORD], scopes: []})',
  'Mutation.patchClient': '(id: "x", input: {name: "x"})',
  'Mutation.updateClient': '(id: "x", input: {name: "x", grantTypes: [PASSWORD], scopes: []})',
  'Mutation.rotateClientSecret': '(id: "x")',
  'Mutation.setClientStatus': '(id: "x", status: ACTIVE)',
  'Mutation.createSupervisor': '(input: {username: "x", password: "x", role: "x"})',
  'Mutation.setSupervisorStatus': '(id: "x", status: ACTIVE)',
  'Mutation.setSupervisorPassword': '(id: "x", password: "x")',
  'Mutation.setSupervisorRole': '(id: "x", role: "x")',
  'Mutation.unlockSupervisor': '(id: "x")',
  'Mutation.revokeSessions': '(supervisorId: "x")',
  'Mutation.markSeen': '(kind: FAILED, id: "x")',
  'Mutation.changeOwnPassword': '(current: "x", new: "x")',
  'Mutation.registerTransaction': '(input: {id: "new", collection: OTC_TRANSACTIONS, type: 1})',
};

interface Reached {
  /** Such as `Account.name`. */
  coordinate: string;
  operation: 'query' | 'mutation' | 'subscription';
  needs: Permission | null | undefined;
  document: string;
}

const schema = graphqlSchema();
const fields = everyField();
const needing = fields.filter(({ needs }) => needs);
const queried = fields.filter(({ operation }) => operation === 'query');

let fixture: Fixture;
let accountId: string;
let walletId: string;
let ruleId: string;
const networkId = '99999999-0000-4000-8000-000000000001';
const assetId = '99999999-0000-4000-8000-000000000002';

beforeAll(async () => {
  // Some fields are reached through four lists.
  fixture = await startFixture({ maxCost: Number.MAX_SAFE_INTEGER });
  accountId = (await fixture.addAccounts(1))[0] ?? '';
  walletId = (await fixture.addWallets(accountId, 1))[0] ?? '';
  await fixture.database.db
    .unscoped('a test sets its rows')
    .raw((sql) => sql`insert into networks (id, chain_id, name) select ${networkId}, id, 'net' from chains`);
  await fixture.database.db.unscoped('a test sets its rows').raw(
    (sql) => sql`insert into assets (id, node_id, name, symbol, type, network_id, status, created_at, updated_at)
      values (${assetId}, ${NODE}, 'A', 'A', 'bond', ${networkId}, 'draft', now(), now())`,
  );
  const create = `mutation { done: createWalletRule(walletId: "${walletId}", input: ${RULE.replaceAll('d: "x"', `d: "${networkId}"`)}) { ... on WalletRule { id } } }`;
  ruleId = (await fixture.query(create)).json.data.done.id;
  await fixture.register('tx');
  await fixture.notify('tx', 1);
});

afterAll(() => fixture[Symbol.asyncDispose]());

describe('every field of the schema', () => {
  it('DG-04: has a permission rule', () => {
    const reached = new Set(fields.map(({ coordinate }) => coordinate));
    const all = Object.values(schema.getTypeMap())
      .filter(
        (type): type is GraphQLObjectType =>
          isObjectType(type) && !type.name.startsWith('__') && SHARED[type.name] === undefined,
      )
      .flatMap((type) => Object.keys(type.getFields()).map((name) => `${type.name}.${name}`));
    expect(all.filter((coordinate) => !reached.has(coordinate))).toEqual([]);
    expect(fields.filter(({ needs }) => needs === undefined)).toEqual([]);
    for (const [name, names] of Object.entries(SHARED)) {
      expect(Object.keys(typeOf(name).getFields()).sort().join(' ')).toBe(names);
    }
  });

  // Nobody looks at the field before: in a quick run some of each type.
  it.each(inTurn(fields, 8, 0))(
    'DG-04: $coordinate without a token gets a 401 with the error envelope and a challenge',
    async ({ document, operation }) => {
      const answer = await fixture.query(withIds(document), { token: undefined, headers: acceptOf(operation) });
      expect(answer.status).toBe(401);
      expect(answer.json).toEqual({ code: -1, domain: 0, message: 'unauthorized' });
      expect(answer.headers.get('www-authenticate')).toBe('Bearer');
    },
  );

  it.each(['{ __typename }', '{ __schema { types { name } } }', '{ nowhere }', '{', ''])(
    'DG-04: without a token %j gets a 401 over any transport',
    async (document) => {
      const headers = { 'content-type': 'application/json' };
      const body = (json: unknown) => ({ method: 'POST', headers, body: JSON.stringify(json) });
      const get = new URLSearchParams({ query: document });
      for (const answer of [
        await fixture.query(document, { token: undefined }),
        await fixture.query(document, { token: 'unknown', headers: { accept: 'text/event-stream' } }),
        await fixture.fetch(body([{ query: document }, { query: document }])),
        await fixture.fetch({}, `?${get}`),
      ]) {
        expect([answer.status, answer.json]).toEqual([401, { code: -1, domain: 0, message: 'unauthorized' }]);
      }
    },
  );

  // In a quick run over HTTP or over a socket.
  it.each(inTurn(needing, 2, 0))('DG-04: $coordinate requires $needs', async (field) => {
    const { document, needs, operation } = field;
    const token = fixture.newToken({ permissions: PERMISSIONS.filter((name) => name !== needs) });
    const answer = document.includes('$file')
      ? await fixture.fetch(uploadOf(document, token))
      : await fixture.query(withIds(document), { token, headers: acceptOf(operation) });
    expect(answer.status).toBe(200);
    if (operation === 'mutation') {
      expect(Object.values(answer.json.data)).toEqual([{ __typename: 'ForbiddenError', permission: needs }]);
      return;
    }
    const json = operation === 'query' ? answer.json : JSON.parse(/^data: (.+)$/m.exec(answer.text)?.[1] ?? '');
    expect(json.errors[0].extensions).toEqual({ code: 'FORBIDDEN', permission: needs });
  });

  it.each(inTurn(queried, 3, 0))('DG-04: $coordinate is returned to a token with its permission', async (field) => {
    const answer = await fixture.query(withIds(field.document));
    expect(answer.json.errors).toBeUndefined();
  });

  it.each(PERMISSIONS)('DG-04: a socket without %s gets FORBIDDEN for fields that require it', async (permission) => {
    const token = fixture.newToken({ permissions: PERMISSIONS.filter((name) => name !== permission) });
    using socket = await openSocket(fixture, token);
    for (const { document, operation, needs } of inTurn(needing, 2, 1)) {
      if (needs !== permission) continue;
      // A socket carries no files.
      if (document.includes('$file')) continue;
      const { text } = await socket.answerTo(withIds(document));
      const told = operation === 'mutation' ? '"__typename":"ForbiddenError"' : '"code":"FORBIDDEN"';
      expect(text).toContain(told);
      expect(text).toContain(`"permission":"${permission}"`);
    }
  });

  it('DG-01 DG-04: states in its description the permission that it requires', () => {
    const silent = fields.filter(({ coordinate, needs }) => {
      const [owner = '', name = ''] = coordinate.split('.');
      const isRoot = ['Query', 'Mutation', 'Subscription'].includes(owner);
      if (!isRoot && needs === needOf(owner)) return false;
      const { description } = typeOf(owner).getFields()[name] ?? {};
      return !description?.match(needs ? new RegExp(`needs ${needs}\\b`, 'i') : /any token|needs a login token/i);
    });
    expect(silent.map(({ coordinate }) => coordinate)).toEqual([]);
  });

  it('DG-04: a token for a password reset gets a 401', async () => {
    const answer = await fixture.query('{ me { nodeId } }', { token: fixture.newToken({ use: 'forgot_password' }) });
    expect(answer.status).toBe(401);
  });
});

describe('a field below another field', () => {
  const EVENTS = 'registerTransaction(input: {id: "new", collection: OTC_TRANSACTIONS, type: 1}) { ... on Transaction';
  const ROWS = 'migrateUsers(users: [{walletAddress: "w", email: "nested@example.com"}]) { ... on Migration';
  const ASSIGNED = 'assignNetwork(walletId: "WALLET", networkId: "NETWORK") { ... on Wallet';

  it.each<[held: Permission[], operation: string, field: string, needs: Permission]>([
    [['transactions:write'], 'mutation', `${EVENTS} { events { totalCount } } }`, 'transactions:read'],
    [['users:migrate'], 'mutation', `${ROWS} { rows { totalCount } } }`, 'users:read'],
    [['wallets:write'], 'mutation', `${ASSIGNED} { account { id } } }`, 'accounts:read'],
    [['wallets:write'], 'mutation', `${ASSIGNED} { rules { totalCount } } }`, 'wallet-rules:read'],
    [
      ['wallets:write', 'accounts:read'],
      'mutation',
      `${ASSIGNED} { account { wallets { totalCount } } } }`,
      'wallets:read',
    ],
    [['accounts:read'], 'query', 'account(id: "ACCOUNT") { wallets { totalCount } }', 'wallets:read'],
    [['accounts:read'], 'query', 'accounts { edges { node { wallets { totalCount } } } }', 'wallets:read'],
    [['wallets:read'], 'query', 'wallet(id: "WALLET") { account { id } }', 'accounts:read'],
    [['wallets:read'], 'query', 'wallet(id: "WALLET") { rules { totalCount } }', 'wallet-rules:read'],
    [['wallets:read'], 'query', 'wallets { edges { node { rules { totalCount } } } }', 'wallet-rules:read'],
  ])('DG-04: with %s the %s %s requires %s', async (held, operation, field, needs) => {
    const document = `${operation} { ${withIds(field)} }`;
    const refused = await fixture.query(document, { token: fixture.newToken({ permissions: held }) });
    expect(refused.json.errors).toHaveLength(1);
    expect(refused.json.errors[0].extensions).toEqual({ code: 'FORBIDDEN', permission: needs });
    const token = fixture.newToken({ permissions: [...held, needs] });
    expect((await fixture.query(document, { token })).json.errors).toBeUndefined();
  });
});

function acceptOf(operation: Reached['operation']) {
  return { accept: operation === 'subscription' ? 'text/event-stream' : 'application/json' };
}

function typeOf(name: string): GraphQLObjectType {
  const type = schema.getType(name);
  if (!isObjectType(type)) throw new Error(`${name} is no object`);
  return type;
}

function uploadOf(query: string, token: string): RequestInit {
  const operations = { ...operationsPart, value: JSON.stringify({ query, variables: { file: null } }) };
  const body = new Uint8Array(formOf([operations, mapPart, filePart]));
  return { method: 'POST', headers: formHeaders(token), body };
}

function withIds(document: string): string {
  return document
    .replace('ACCOUNT', accountId)
    .replace('WALLET', walletId)
    .replace('NETWORK', networkId)
    .replace('STORED', ruleId)
    .replace('ASSET', assetId);
}

function everyField(): Reached[] {
  const found = new Map<string, Reached>();
  const roots = { query: schema.getQueryType(), subscription: schema.getSubscriptionType() } as const;
  for (const [operation, root] of Object.entries(roots)) {
    if (root) walk(root, operation as Reached['operation'], [], found);
  }
  for (const name of Object.keys(schema.getMutationType()?.getFields() ?? {})) {
    const coordinate = `Mutation.${name}`;
    // A file comes as a variable alone.
    const variables = name === 'startUserMigration' ? ' ($file: File!)' : '';
    const document = `mutation${variables} { ${name}${ARGUMENTS[coordinate] ?? ''} { __typename ... on ForbiddenError { permission } } }`;
    found.set(coordinate, { coordinate, operation: 'mutation', needs: OF_MUTATION[name], document });
  }
  return [...found.values()];
}

function walk(
  type: GraphQLObjectType,
  operation: Reached['operation'],
  path: string[],
  found: Map<string, Reached>,
): void {
  for (const field of Object.values(type.getFields())) {
    const coordinate = `${type.name}.${field.name}`;
    if (found.has(coordinate)) continue;
    const target = getNamedType(field.type);
    const call = `${field.name}${ARGUMENTS[coordinate] ?? sampleArguments(field)}`;
    const isObject = isObjectType(target);
    const document =
      [operation, ...path, call].join(' { ') +
      (isObject || isUnionType(target) ? ' { __typename }' : '') +
      ' }'.repeat(path.length + 1);
    const owner = isObject && SHARED[target.name] === undefined ? target.name : type.name;
    found.set(coordinate, { coordinate, operation, needs: needOf(owner), document });
    if (isObject && SHARED[target.name] === undefined) walk(target, operation, [...path, call], found);
  }
}

function sampleArguments({ args }: GraphQLField<unknown, unknown>): string {
  const required = args.filter(({ type }: { type: GraphQLInputType }) => isNonNullType(type));
  if (required.length > 0)
    throw new Error(`say in ARGUMENTS what to give for ${required.map(({ name }) => name).join()}`);
  return '';
}

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
import { buildSchema } from '../../src/graphql/schema.ts';
import { PERMISSIONS, type Permission } from '../../src/oauth/permissions.rules.ts';
import { type Stand, startStand } from './stand.ts';
import { filePart, formHeaders, formOf, mapPart, operationsPart } from './upload-requests.ts';

// Whoever adds a type or a root field says here what it needs; null: any token.
const OF_TYPE: Record<string, Permission | null> = {
  Viewer: null,
  GasFee: null,
  PriorityFee: null,
  Account: 'accounts:read',
  AccountConnection: 'accounts:read',
  AccountEdge: 'accounts:read',
  Wallet: 'wallets:read',
  WalletConnection: 'wallets:read',
  WalletEdge: 'wallets:read',
  WalletRule: 'wallet-rules:read',
  WalletRuleConnection: 'wallet-rules:read',
  WalletRuleEdge: 'wallet-rules:read',
  AutoTransferRule: 'wallet-rules:read',
  SignAndApproveRule: 'wallet-rules:read',
  PermissionlessTransferLimitRule: 'wallet-rules:read',
  WalletRulePreview: 'wallet-rules:read',
  WalletRuleExplanation: 'wallet-rules:read',
  Network: null,
  NetworkConnection: null,
  NetworkEdge: null,
  User: 'users:read',
  UserConnection: 'users:read',
  UserEdge: 'users:read',
  Kyc: 'users:read',
  Migration: 'users:read',
  MigrationConnection: 'users:read',
  MigrationEdge: 'users:read',
  MigrationRow: 'users:read',
  MigrationProgress: 'users:read',
  MigrationRowConnection: 'users:read',
  MigrationRowEdge: 'users:read',
  Asset: 'tokens:read',
  AssetConnection: 'tokens:read',
  AssetEdge: 'tokens:read',
  Transaction: 'transactions:read',
  TransactionConnection: 'transactions:read',
  TransactionEdge: 'transactions:read',
  TransactionEvent: 'transactions:read',
  TransactionEventConnection: 'transactions:read',
  TransactionEventEdge: 'transactions:read',
  TransactionUpdate: 'transactions:read',
  Client: 'clients:manage',
  ClientConnection: 'clients:manage',
  ClientEdge: 'clients:manage',
  TokenExpiry: 'clients:manage',
  RateLimit: 'clients:manage',
  Supervisor: 'clients:manage',
  SupervisorConnection: 'clients:manage',
  SupervisorEdge: 'clients:manage',
  AuditRecord: 'audit:read',
  AuditRecordConnection: 'audit:read',
  AuditRecordEdge: 'audit:read',
};
const OF_MUTATION: Record<string, Permission> = {
  createWalletRule: 'wallet-rules:write',
  replaceWalletRule: 'wallet-rules:write',
  setWalletRuleStatus: 'wallet-rules:write',
  assignNetwork: 'wallets:write',
  migrateUser: 'users:migrate',
  migrateUsers: 'users:migrate',
  startUserMigration: 'users:migrate',
  cancelUserMigration: 'users:migrate',
  eraseUser: 'users:migrate',
  registerTransaction: 'transactions:write',
  createClient: 'clients:manage',
  updateClient: 'clients:manage',
  rotateClientSecret: 'clients:manage',
  setClientStatus: 'clients:manage',
  createSupervisor: 'clients:manage',
  setSupervisorStatus: 'clients:manage',
  setSupervisorPassword: 'clients:manage',
  setSupervisorRole: 'clients:manage',
  unlockSupervisor: 'clients:manage',
  revokeSessions: 'clients:manage',
};
/** Parts of what other types are reached through: they have nothing of their own. */
const SHARED = new Set([
  'PageInfo',
  'InputIssue',
  'ValidationError',
  'NotFoundError',
  'ForbiddenError',
  'DuplicateError',
  'PreconditionError',
  // Of mutations alone.
  'CreatedClient',
]);

const RULE =
  '{name: "x", type: "permissionless_transfer_limit", networkId: "x", networkCurrencyId: "x", permissionlessTransferLimitRule: {maxAmount: 1, timePeriod: "day", timePeriodValue: 1}}';

const ARGUMENTS: Record<string, string> = {
  'Query.account': '(id: "ACCOUNT")',
  'Query.wallet': '(id: "WALLET")',
  'Query.walletRules': '(walletId: "WALLET")',
  'Query.walletRule': '(id: "x")',
  'Query.previewWalletRule': `(input: {balances: [], rule: ${RULE.replaceAll('d: "x"', `d: "${'0'.repeat(8)}-0000-0000-0000-${'0'.repeat(12)}"`)}})`,
  'Mutation.createWalletRule': `(walletId: "x", input: ${RULE})`,
  'Mutation.replaceWalletRule': `(walletId: "x", id: "x", input: ${RULE})`,
  'Mutation.setWalletRuleStatus': '(id: "x", status: ACTIVE)',
  'Mutation.assignNetwork': '(walletId: "x", networkId: "x")',
  'Query.user': '(id: "x")',
  'Query.migration': '(id: "x")',
  'Query.asset': '(id: "x")',
  'Mutation.migrateUser': '(input: {walletAddress: "x"})',
  'Mutation.migrateUsers': '(users: [{walletAddress: "x"}])',
  'Mutation.startUserMigration': '(file: $file)',
  'Mutation.cancelUserMigration': '(id: "x")',
  'Subscription.migrationProgress': '(id: "x")',
  'Mutation.eraseUser': '(id: "x")',
  'Query.transaction': '(id: "tx")',
  'Subscription.transaction': '(id: "tx")',
  'Query.client': '(id: "x")',
  'Mutation.createClient': '(input: {name: "x", grantTypes: [PASSWORD], scopes: []})',
  'Mutation.updateClient': '(id: "x", input: {name: "x", grantTypes: [PASSWORD], scopes: []})',
  'Mutation.rotateClientSecret': '(id: "x")',
  'Mutation.setClientStatus': '(id: "x", status: ACTIVE)',
  'Mutation.createSupervisor': '(input: {username: "x", password: "x", role: "x"})',
  'Mutation.setSupervisorStatus': '(id: "x", status: ACTIVE)',
  'Mutation.setSupervisorPassword': '(id: "x", password: "x")',
  'Mutation.setSupervisorRole': '(id: "x", role: "x")',
  'Mutation.unlockSupervisor': '(id: "x")',
  'Mutation.revokeSessions': '(supervisorId: "x")',
  'Mutation.registerTransaction': '(input: {id: "new", collection: OTC_TRANSACTIONS, type: 1})',
};

interface Reached {
  /** Such as `Account.name`. */
  coordinate: string;
  operation: 'query' | 'mutation' | 'subscription';
  needs: Permission | null | undefined;
  document: string;
}

const schema = buildSchema();
const fields = everyField();

let stand: Stand;
let accountId: string;
let walletId: string;

beforeAll(async () => {
  stand = await startStand();
  accountId = (await stand.addAccounts(1))[0] ?? '';
  walletId = (await stand.addWallets(accountId, 1))[0] ?? '';
  await stand.register('tx');
  await stand.notify('tx', 1);
});

afterAll(() => stand[Symbol.asyncDispose]());

describe('every field of the schema', () => {
  it('DG-04: has a rule', () => {
    const reached = new Set(fields.map(({ coordinate }) => coordinate));
    const all = Object.values(schema.getTypeMap())
      .filter(
        (type): type is GraphQLObjectType =>
          isObjectType(type) && !type.name.startsWith('__') && !SHARED.has(type.name),
      )
      .flatMap((type) => Object.keys(type.getFields()).map((name) => `${type.name}.${name}`));
    expect(all.filter((coordinate) => !reached.has(coordinate))).toEqual([]);
    expect(fields.filter(({ needs }) => needs === undefined)).toEqual([]);
  });

  it.each(fields)(
    'DG-04: $coordinate without a token is 401 in the envelope, with a challenge',
    async ({ document }) => {
      const answer = await stand.query(withIds(document), { token: undefined });
      expect(answer.status).toBe(401);
      expect(answer.json).toEqual({ code: -1, domain: 0, message: 'unauthorized' });
      expect(answer.headers.get('www-authenticate')).toBe('Bearer error="invalid_token"');
    },
  );

  it.each(fields.filter(({ needs }) => needs))('DG-04: $coordinate needs $needs', async (field) => {
    const { document, needs, operation } = field;
    const token = stand.newToken({ permissions: PERMISSIONS.filter((name) => name !== needs) });
    const accept = operation === 'subscription' ? 'text/event-stream' : 'application/json';
    const answer = document.includes('$file')
      ? await stand.fetch(uploadOf(document, token))
      : await stand.query(withIds(document), { token, headers: { accept } });
    expect(answer.status).toBe(200);
    if (operation === 'mutation') {
      expect(Object.values(answer.json.data)).toEqual([{ __typename: 'ForbiddenError', permission: needs }]);
      return;
    }
    const json = operation === 'query' ? answer.json : JSON.parse(/^data: (.+)$/m.exec(answer.text)?.[1] ?? '');
    expect(json.errors[0].extensions).toEqual({ code: 'FORBIDDEN', permission: needs });
  });

  it.each(fields.filter(({ operation }) => operation === 'query'))(
    'DG-04: $coordinate is told to whoever may',
    async (field) => {
      const answer = await stand.query(withIds(field.document));
      expect(answer.json.errors).toBeUndefined();
    },
  );

  it('DG-04: a token that resets a password is 401', async () => {
    const answer = await stand.query('{ me { nodeId } }', { token: stand.newToken({ use: 'forgot_password' }) });
    expect(answer.status).toBe(401);
  });
});

function uploadOf(query: string, token: string): RequestInit {
  const operations = { ...operationsPart, value: JSON.stringify({ query, variables: { file: null } }) };
  const body = new Uint8Array(formOf([operations, mapPart, filePart]));
  return { method: 'POST', headers: formHeaders(token), body };
}

function withIds(document: string): string {
  return document.replace('ACCOUNT', accountId).replace('WALLET', walletId);
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
    const owner = isObject && !SHARED.has(target.name) ? target.name : type.name;
    found.set(coordinate, { coordinate, operation, needs: OF_TYPE[owner], document });
    if (isObject && !SHARED.has(target.name)) walk(target, operation, [...path, call], found);
  }
}

function sampleArguments({ args }: GraphQLField<unknown, unknown>): string {
  const required = args.filter(({ type }: { type: GraphQLInputType }) => isNonNullType(type));
  if (required.length > 0)
    throw new Error(`say in ARGUMENTS what to give for ${required.map(({ name }) => name).join()}`);
  return '';
}

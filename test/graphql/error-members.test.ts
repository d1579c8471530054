import { isUnionType } from 'graphql';
import { beforeAll, describe, expect, it } from 'vitest';
import type { z } from 'zod';
import { graphqlSchema } from '../../src/app/graphql-schema.ts';
import { migrateUserInput } from '../../src/features/user-migrations/migration.input.ts';
import { walletRuleInput } from '../../src/features/wallet-rules/wallet-rule.input.ts';
import { issuesOf } from '../../src/platform/errors.ts';
import { useFixture } from '../support/graphql/fixture.ts';
import { filePart, formHeaders, formOf, mapPart, operationsPart } from '../support/graphql/upload-requests.ts';

const UUID = 'ffffffff-0000-4000-8000-00000000000f';
const RULE = `{name: "r", type: "permissionless_transfer_limit", networkId: "${UUID}", networkCurrencyId: "${UUID}", permissionlessTransferLimitRule: {maxAmount: 1, timePeriod: "day", timePeriodValue: 1}}`;
const BAD_RULE = RULE.replace('"day"', '"era"').replace(`networkId: "${UUID}"`, 'networkId: "x"');
const BAD_CLIENT = '{name: "", grantTypes: [], scopes: [], allowedIps: ["x"], rateLimit: {requestsPerHour: 0}}';
const CLIENT = '{name: "c", grantTypes: [CLIENT_CREDENTIALS], scopes: []}';

/** Where an error of a mutation is met: what calls it so, and of a ValidationError the paths. `never`: not at present. */
type Case = string | [call: string, ...paths: string[]] | 'never';
type Cases = Record<string, Case>;

/** A name in capitals stands for the id of something that there is. Every mutation's ForbiddenError has a walk of its own. */
const CASES: Record<string, Cases> = {
  createWalletRule: {
    ValidationError: [
      `(walletId: "WALLET", input: ${BAD_RULE})`,
      'networkId',
      'permissionlessTransferLimitRule.timePeriod',
    ],
    NotFoundError: `(walletId: "${UUID}", input: ${RULE})`,
  },
  replaceWalletRule: {
    ValidationError: [
      `(walletId: "WALLET", id: "RULE", input: ${BAD_RULE})`,
      'networkId',
      'permissionlessTransferLimitRule.timePeriod',
    ],
    NotFoundError: `(walletId: "WALLET", id: "${UUID}", input: ${RULE})`,
    PreconditionError: `(walletId: "WALLET", id: "RULE", input: ${RULE}, ifVersion: 7)`,
  },
  setWalletRuleStatus: {
    ValidationError: 'never',
    NotFoundError: `(id: "${UUID}", status: DISABLED)`,
    PreconditionError: '(id: "RULE", status: DISABLED, ifVersion: 7)',
  },
  assignNetwork: {
    ValidationError: ['(walletId: "WALLET", networkId: "FAR")', 'networkId'],
    NotFoundError: `(walletId: "${UUID}", networkId: "FAR")`,
  },
  migrateUser: {
    ValidationError: ['(input: {walletAddress: "", name: "\\u0000", email: "a@b"})', 'walletAddress', 'name'],
    DuplicateError: '(input: {walletAddress: "other", email: "MINE@example.com"})',
    NotFoundError: 'never',
  },
  migrateUsers: {
    ValidationError: ['(users: [{walletAddress: "w"}, {walletAddress: " "}])', 'users.1.walletAddress'],
    NotFoundError: 'never',
  },
  startUserMigration: {
    ValidationError: ['(file: $file)', 'file'],
    NotFoundError: 'never',
    // Where 4 GiB of files wait: has a test of its own.
    PreconditionError: 'never',
  },
  cancelUserMigration: {
    ValidationError: 'never',
    NotFoundError: `(id: "${UUID}")`,
    PreconditionError: '(id: "MIGRATION")',
  },
  eraseUser: { ValidationError: 'never', NotFoundError: `(id: "${UUID}")` },
  registerTransaction: {
    ValidationError: ['(input: {id: "", collection: OTC_TRANSACTIONS, type: 1, assetId: "x"})', 'id', 'assetId'],
    DuplicateError: '(input: {id: "taken", collection: OTC_TRANSACTIONS, type: 1})',
    // Where its owner moves it to another node in between.
    NotFoundError: 'never',
  },
  createClient: {
    ValidationError: [`(input: ${BAD_CLIENT})`, 'name', 'grantTypes', 'allowedIps.0', 'rateLimit.requestsPerHour'],
    NotFoundError: 'never',
  },
  updateClient: {
    ValidationError: [
      `(id: "CLIENT", input: ${BAD_CLIENT})`,
      ...['name', 'grantTypes', 'allowedIps.0', 'rateLimit.requestsPerHour'],
    ],
    NotFoundError: `(id: "${UUID}", input: ${CLIENT})`,
  },
  patchClient: {
    ValidationError: [
      '(id: "CLIENT", input: {name: "", grantTypes: [], allowedIps: ["x"], rateLimit: {requestsPerHour: -1}})',
      ...['name', 'grantTypes', 'allowedIps.0', 'rateLimit.requestsPerHour'],
    ],
    NotFoundError: `(id: "${UUID}", input: {name: "x"})`,
  },
  rotateClientSecret: {
    ValidationError: ['(id: "CLIENT", overlapSeconds: -1)', 'overlapSeconds'],
    NotFoundError: `(id: "${UUID}")`,
  },
  setClientStatus: { ValidationError: 'never', NotFoundError: `(id: "${UUID}", status: ACTIVE)` },
  createSupervisor: {
    ValidationError: ['(input: {username: "", password: "x", role: "x"})', 'username', 'password', 'role'],
    DuplicateError: '(input: {username: "ADMIN", password: "12345678", role: "viewer"})',
    NotFoundError: 'never',
  },
  setSupervisorStatus: {
    ValidationError: 'never',
    NotFoundError: `(id: "${UUID}", status: DISABLED)`,
    PreconditionError: '(id: "SUPERVISOR", status: DISABLED)',
  },
  setSupervisorPassword: {
    ValidationError: ['(id: "SUPERVISOR", password: "short")', 'password'],
    NotFoundError: `(id: "${UUID}", password: "12345678")`,
    PreconditionError: 'never',
  },
  setSupervisorRole: {
    ValidationError: ['(id: "SUPERVISOR", role: "king")', 'role'],
    NotFoundError: `(id: "${UUID}", role: "viewer")`,
    PreconditionError: '(id: "SUPERVISOR", role: "viewer")',
  },
  unlockSupervisor: { ValidationError: 'never', NotFoundError: `(id: "${UUID}")`, PreconditionError: 'never' },
  revokeSessions: { ValidationError: 'never', NotFoundError: `(supervisorId: "${UUID}")`, PreconditionError: 'never' },
  requestAuditExport: {
    ValidationError: 'never',
    NotFoundError: 'never',
    // Where another one waits or runs: test/audit/audit-export-job.
    PreconditionError: 'never',
  },
  markSeen: {
    ValidationError: [`(kind: FAILED, id: "x", note: "${'n'.repeat(1_025)}")`, 'note'],
    PreconditionError: '(kind: FAILED, id: "x")',
    NotFoundError: 'never',
  },
  // The token of these cases was not issued by a login.
  changeOwnPassword: { ValidationError: 'never', NotFoundError: '(current: "12345678", new: "87654321")' },
  endOwnSessions: { ValidationError: 'never', NotFoundError: '' },
};

const schema = graphqlSchema();
const mutations = Object.values(schema.getMutationType()?.getFields() ?? {});
const met = Object.entries(CASES).flatMap(([mutation, cases]) =>
  Object.entries(cases).flatMap(([member, given]) => (given === 'never' ? [] : [[mutation, member, given] as const])),
);
const ids: Record<string, string> = { FAR: '99999999-0000-4000-8000-000000000001' };
const ERROR = '__typename ... on Error { message } ... on ValidationError { issues { path message } }';

const fixture = useFixture();

beforeAll(async () => {
  const [account = ''] = await fixture.addAccounts(1);
  [ids.WALLET = ''] = await fixture.addWallets(account, 1);
  const door = fixture.database.db.unscoped('a test sets its rows');
  await door.raw((sql) => sql`insert into chains (id, name) values (${UUID}, 'polygon')`);
  await door.raw((sql) => sql`insert into networks (id, chain_id, name) values (${ids.FAR}, ${UUID}, 'far')`);
  await fixture.register('taken');
  const { json } = await fixture.query(
    `mutation {
      RULE: createWalletRule(walletId: "${ids.WALLET}", input: ${RULE}) { ... on WalletRule { id } }
      USER: migrateUser(input: {walletAddress: "w", email: "mine@example.com"}) { ... on User { id } }
      MIGRATION: migrateUsers(users: [{walletAddress: "v", email: "v@example.com"}]) { ... on Migration { id } }
      CLIENT: createClient(input: ${CLIENT}) { ... on CreatedClient { client { id } } }
      SUPERVISOR: createSupervisor(input: {username: "admin", password: "12345678", role: "admin"}) { ... on Supervisor { id } }
    }`,
  );
  for (const [name, made] of Object.entries(json.data)) {
    const { id, client } = made as { id?: string; client?: { id: string } };
    ids[name] = id ?? client?.id ?? '';
  }
  expect(Object.values(ids).every((id) => id !== '')).toBe(true);
});

async function call(mutation: string, given: string) {
  const field = `result: ${mutation}${given.replaceAll(/"([A-Z]{3,})"/g, (all, name: string) => (ids[name] ? `"${ids[name]}"` : all))} { ${ERROR} }`;
  if (!given.includes('$file')) return (await fixture.query(`mutation { ${field} }`)).json;
  const query = `mutation ($file: File!) { ${field} }`;
  const operations = { ...operationsPart, value: JSON.stringify({ query, variables: { file: null } }) };
  const file = { ...filePart, value: 'no_such_column\n1\n' };
  const body = new Uint8Array(formOf([operations, mapPart, file]));
  return (await fixture.fetch({ method: 'POST', headers: formHeaders(fixture.token), body })).json;
}

describe('the error members of mutations', () => {
  it('DG-03: each occur in a case here, or are marked as unused', () => {
    const members = mutations.map(({ name }) => {
      const union = schema.getType(`${name[0]?.toUpperCase()}${name.slice(1)}Result`);
      const types = isUnionType(union) ? union.getTypes().map((type) => type.name) : [];
      return [name, types.filter((type) => type.endsWith('Error') && type !== 'ForbiddenError').sort()];
    });
    const table = mutations.map(({ name }) => [name, Object.keys(CASES[name] ?? {}).sort()]);
    expect(table).toEqual(members);
    for (const [, types] of members)
      expect(types).toEqual(expect.arrayContaining(['NotFoundError', 'ValidationError']));
  });

  it.each(met)('DG-03: %s returns a %s', async (mutation, member, given) => {
    const [text, ...paths] = typeof given === 'string' ? [given] : given;
    const { data, errors } = await call(mutation, text);
    expect(errors).toBeUndefined();
    expect(data.result).toMatchObject({ __typename: member, message: expect.stringMatching(/\w/) });
    const issues: { path: string[]; message: string }[] = data.result.issues ?? [];
    expect(issues.map(({ path }) => path.join('.')).sort()).toEqual(paths.sort());
    expect(issues.every(({ message }) => message !== '')).toBe(true);
    expect(fixture.faults).toEqual([]);
  });

  it('DG-03: report the same issues of a rule and of a user as REST does', async () => {
    const limit = { max_amount: 1, time_period: 'era', time_period_value: 1 };
    const rule = { name: 'r', type: 'permissionless_transfer_limit', network_id: 'x', network_currency_id: UUID };
    const told = async (mutation: string) => {
      const [text = ''] = CASES[mutation]?.ValidationError ?? [];
      const { data } = await call(mutation, text);
      return data.result.issues.map(({ path, message }: { path: string[]; message: string }) => [
        path.join('.').replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
        message,
      ]);
    };
    const restRule = { ...rule, permissionless_transfer_limit_rule: limit };
    const restUser = { wallet_address: '', name: '\0', email: 'a@b' };
    const rest = (schema: z.ZodType, body: object) => {
      const { error } = schema.safeParse(body);
      return error ? issuesOf(error, body).map(({ path, message }) => [path, message]) : [];
    };
    expect(await told('createWalletRule')).toEqual(rest(walletRuleInput, restRule));
    expect(await told('migrateUser')).toEqual(rest(migrateUserInput, restUser));
  });
});

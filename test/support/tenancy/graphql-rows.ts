import { change, NOT_FOUND, operate, row, STORED, type Thing } from './graphql-operation.ts';
import { RULE_ROWS } from './graphql-rule-rows.ts';
import type { SurfaceRow } from './surface-row.ts';

const LIST = 'totalCount edges { node { id } }';

function reads(): SurfaceRow[] {
  const one = (field: string, thing: Thing) =>
    row(`Query.${field}(id)`, `query { ${field}(id: $id) { id } }`, thing, `{"data":{"${field}":null}}`);
  const none = '"totalCount":0,"edges":[]';
  const searched = (field: string, thing: Thing) =>
    row(`Query.${field}(filter.search)`, '', thing, none, {
      ask: (call, id) => operate(call, `query { ${field}(filter: {search: ${JSON.stringify(id)}}) { ${LIST} } }`),
    });
  const audited = (name: string, thing: Thing) =>
    row(`Query.auditRecords(filter.${name})`, '', thing, none, {
      ask: (call, id) => operate(call, `query { auditRecords(filter: {${name}: ${JSON.stringify(id)}}) { ${LIST} } }`),
    });
  const filtered = (name: string, thing: Thing) =>
    row(`Query.wallets(filter.${name})`, `query { wallets(filter: {${name}: $id}) { ${LIST} } }`, thing, none);
  return [
    one('account', (of) => of.account),
    one('asset', (of) => of.asset),
    one('client', (of) => of.idleClient),
    one('migration', (of) => of.migration),
    one('transaction', (of) => of.transaction),
    one('user', (of) => of.user),
    one('wallet', (of) => of.wallet),
    one('walletRule', (of) => of.rule),
    searched('accounts', (of) => of.mark),
    searched('users', (of) => of.users[0]?.email ?? ''),
    audited('correlationId', (of) => of.mark),
    // In letters in which no other row asks for it.
    audited('path', (of) => `/v2/admin/tokens/${of.asset.toUpperCase()}`),
    filtered('accountId', (of) => of.account),
    filtered('networkId', (of) => of.network),
    row(
      'Query.walletRules(walletId)',
      'query { walletRules(walletId: $id) { totalCount edges { node { id } } } }',
      (of) => of.wallet,
      '"code":"NOT_FOUND"',
    ),
    row(
      'Query.walletRuleVersions(ruleId)',
      'query { walletRuleVersions(ruleId: $id) { totalCount edges { node { version rule } } } }',
      (of) => of.rule,
      '"code":"NOT_FOUND"',
    ),
  ];
}

function changesOfPeople(): SurfaceRow[] {
  const person = (call: string, more = {}) =>
    change(`${call.split('(')[0]}(id)`, call, (of) => of.supervisor, NOT_FOUND, more);
  const client = '{name: "c", grantTypes: [PASSWORD], scopes: []}';
  return [
    change('updateClient(id)', `updateClient(id: $id, input: ${client})`, (of) => of.idleClient),
    change('rotateClientSecret(id)', 'rotateClientSecret(id: $id)', (of) => of.idleClient),
    change('setClientStatus(id)', 'setClientStatus(id: $id, status: DISABLED)', (of) => of.idleClient),
    person('setSupervisorStatus(id: $id, status: DISABLED)'),
    person('setSupervisorPassword(id: $id, password: "another password")'),
    person('setSupervisorRole(id: $id, role: "operator")'),
    person('unlockSupervisor(id: $id)'),
    change('revokeSessions(supervisorId)', 'revokeSessions(supervisorId: $id)', (of) => of.supervisor),
    row('Mutation.createSupervisor(input.username)', '', (of) => of.username, '"__typename":"Supervisor"', {
      ask: (call, id) => {
        const input = `{username: ${JSON.stringify(id)}, password: "long enough", role: "viewer"}`;
        return operate(call, `mutation { createSupervisor(input: ${input}) { __typename } }`);
      },
    }),
    change('eraseUser(id)', 'eraseUser(id: $id)', (of) => of.user),
    change('cancelUserMigration(id)', 'cancelUserMigration(id: $id)', (of) => of.migration),
  ];
}

/** Each names a user of its own: what a row makes is the caller's, and would be found by the next. */
function migrations(): SurfaceRow[] {
  const members = { email: 'email', externalId: 'external_id', walletAddress: 'wallet_address' } as const;
  return Object.entries(members).flatMap(([member, name], index) => {
    const user = (id: string) => {
      const given = { walletAddress: `w-of-${id}`, externalId: `x-of-${id}`, kycSent: true, [member]: id };
      return `{${Object.entries(given).map(([key, value]) => `${key}: ${JSON.stringify(value)}`)}}`;
    };
    const one = (id: string) => `mutation { migrateUser(input: ${user(id)}) { __typename ... on User { address } } }`;
    const many = (id: string) =>
      `mutation { migrateUsers(users: [${user(id)}]) { ... on Migration { success skipped rows { edges { node { reason } } } } } }`;
    return [
      row(`Mutation.migrateUser(input.${member})`, '', (of) => of.users[index + 1]?.[name] ?? '', '"User"', {
        ask: (call, id) => operate(call, one(id)),
      }),
      row(`Mutation.migrateUsers(users.${member})`, '', (of) => of.users[index + 4]?.[name] ?? '', '"success":1', {
        ask: (call, id) => operate(call, many(id)),
      }),
    ];
  });
}

function transactions(): SurfaceRow[] {
  const register = (id: string, asset: string) =>
    `mutation { registerTransaction(input: {id: "${id}", collection: TOKEN_TRANSACTIONS, type: 1, assetId: "${asset}"}) { __typename } }`;
  return [
    row('Mutation.registerTransaction(input.assetId)', '', (of) => of.asset, '"__typename":"Transaction"', {
      ask: (call, id) => operate(call, register(`of-${id}`, id)),
      alike: STORED,
    }),
    row(
      'Subscription.transaction(id)',
      'subscription { transaction(id: $id) { id } }',
      (of) => of.transaction,
      '"code":"NOT_FOUND"',
      { ask: (call, id) => operate(call, 'subscription { transaction(id: $id) { id } }', { id }, 'text/event-stream') },
    ),
    row(
      'Subscription.migrationProgress(id)',
      'subscription { migrationProgress(id: $id) { done } }',
      (of) => of.migration,
      '"code":"NOT_FOUND"',
      {
        ask: (call, id) =>
          operate(call, 'subscription { migrationProgress(id: $id) { done } }', { id }, 'text/event-stream'),
      },
    ),
  ];
}

/** Every place of the schema that can name a thing of a node, cursors apart. */
export const GRAPHQL_ROWS: readonly SurfaceRow[] = [
  ...reads(),
  ...RULE_ROWS,
  ...changesOfPeople(),
  ...migrations(),
  ...transactions(),
];

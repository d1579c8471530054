import type { Answer } from '../harness.ts';
import { strangerOf, type Things } from './marked-node.ts';
import { type Call, STORED, type SurfaceRow, type Thing, thingOf } from './surface-row.ts';

type Variables = Record<string, unknown>;
/** What an operation is asked with, of the id that is named and the caller's own things. */
type Given = (id: string, own: Things) => Variables;

const NOT_FOUND = '"__typename":"NotFoundError"';
const NO_SUCH = '"code":"NOT_FOUND"';
const TYPES: Record<string, string> = {
  rule: 'WalletRuleInput!',
  input: 'PreviewWalletRuleInput!',
  facts: 'PreviewFacts!',
  text: 'String!',
  search: 'String!',
  since: 'DateTime!',
  until: 'DateTime!',
  bucket: 'StatsBucket!',
};

/** Sends an operation that declares the variables that it uses. */
export function operate(call: Call, text: string, variables: Variables = {}, accept = '*/*'): Promise<Answer> {
  const [kind = 'query'] = /^\w+/.exec(text) ?? [];
  const used = [...new Set([...text.matchAll(/\$(\w+)/g)].map(([, name = '']) => name))];
  const types = used.map((name) => `$${name}: ${TYPES[name] ?? 'ID!'}`);
  const query = text.replace(kind, used.length === 0 ? kind : `${kind} (${types.join(', ')})`);
  const given = Object.fromEntries(used.map((name) => [name, variables[name]]));
  return call('POST', '/graphql', { json: { query, variables: given }, headers: { accept } });
}

/** The places of a rule where a thing is named. */
const RULE_IDS: readonly string[] = [
  ...['networkId', 'networkCurrencyId', 'autoTransferRule.targetWalletId', 'autoTransferRule.ruleLogic'],
  'signAndApproveRule.mandatoryUserId',
];

/** A rule in whose every id is the caller's own but for one place. */
function ruleInput(own: Things, at?: string, id = ''): Variables {
  const idAt = (place: string, otherwise: string) => (place === at ? id : otherwise);
  const logic = idAt('autoTransferRule.ruleLogic', own.asset);
  return {
    ...{ name: 'r', type: 'auto_transfer', networkId: idAt('networkId', own.network) },
    networkCurrencyId: idAt('networkCurrencyId', own.asset),
    autoTransferRule: {
      ruleLogic: { and: [{ field: 'balance', op: 'lt', value: 1, network_currency_id: logic }] },
      ...{ type: 'auto', amount: 1, targetWalletId: idAt('autoTransferRule.targetWalletId', own.wallet) },
    },
    signAndApproveRule: { mandatoryUserId: idAt('signAndApproveRule.mandatoryUserId', own.user) },
  };
}

/** A row whose operation takes what is named as `$id`, an `ID`, or as `$text`, a `String`. */
function row(covers: string, operation: string, thing: Thing, says: string, given?: Given, alike?: string): SurfaceRow {
  const accept = operation.startsWith('subscription') ? 'text/event-stream' : '*/*';
  const ask: SurfaceRow['ask'] = (call, id, own) => {
    const usual = { id, text: id, ownWallet: own.wallet, ownRule: own.rule, ownNetwork: own.network };
    return operate(call, operation, { ...usual, rule: ruleInput(own), ...given?.(id, own) }, accept);
  };
  return { covers, thing: thingOf(thing), ask, says, ...(alike === undefined ? {} : { alike }) };
}

/** A row of a mutation that is called with what is named. */
function change(covers: string, args: string, thing: Thing, says = NOT_FOUND): SurfaceRow {
  const call = `${covers.split('(')[0]}(${args})`;
  return row(`Mutation.${covers}`, `mutation { done: ${call} { __typename ... on Error { message } } }`, thing, says);
}

const LIST = '{ totalCount edges { node { id } } }';
const NONE = '"totalCount":0,"edges":[]';
const READ = {
  account: 'account',
  asset: 'asset',
  auditExport: 'auditExport',
  client: 'idleClient',
  migration: 'migration',
} as const;
const READ_TOO = {
  supervisor: 'supervisor',
  transaction: 'transaction',
  user: 'user',
  wallet: 'wallet',
  walletRule: 'rule',
} as const;
const FILTERS: [field: string, filter: string, thing: Thing][] = [
  ['accounts', 'search', 'mark'],
  ['users', 'search', (of) => of.users[0]?.email ?? ''],
  ['auditRecords', 'correlationId', 'mark'],
  ['auditRecords', 'correlationIds', 'mark'],
  // In letters in which no other row asks for it.
  ['auditRecords', 'path', (of) => `/v2/admin/tokens/${of.asset.toUpperCase()}`],
  ['auditRecords', 'pathPrefix', (of) => `/v2/admin/tokens/${of.asset.toUpperCase()}`],
  ['auditRecords', 'subject', (of) => of.client.client_id],
  ['auditRecords', 'clientId', (of) => of.client.client_id],
  ['auditRecords', 'attemptedUsername', ({ mark }) => strangerOf(mark)],
  ['wallets', 'accountId', 'account'],
  ['wallets', 'networkId', 'network'],
  ['transactions', 'idOrHash', 'transaction'],
  ['transactions', 'search', 'transaction'],
];
const VERSIONS = 'query { walletRuleVersions(ruleId: $id) { totalCount edges { node { version rule } } } }';

const READS: SurfaceRow[] = [
  ...Object.entries({ ...READ, ...READ_TOO }).map(([field, thing]) =>
    row(`Query.${field}(id)`, `query { ${field}(id: $id) { id } }`, thing, `{"data":{"${field}":null}}`),
  ),
  ...FILTERS.map(([field, filter, thing]) => {
    const variable = filter.endsWith('Id') && filter !== 'correlationId' ? '$id' : '$text';
    return row(
      `Query.${field}(filter.${filter})`,
      `query { ${field}(filter: {${filter}: ${variable}}) ${LIST} }`,
      thing,
      NONE,
    );
  }),
  row('Query.walletRules(walletId)', `query { walletRules(walletId: $id) ${LIST} }`, 'wallet', NO_SUCH),
  row('Query.walletRuleVersions(ruleId)', VERSIONS, 'rule', NO_SUCH),
];

const JANUARY = '2026-01-01T00:00:00Z';
const PREVIEW =
  'query { previewWalletRule(input: $input) { fires explanation { path reason } warnings { path message } } }';

const FACTS = {
  balances: (id: string) => ({ field: 'balance', networkCurrencyId: id, value: 1 }),
  transfers: (id: string) => ({ networkCurrencyId: id, amount: 1, at: JANUARY }),
};
const WALLET_PREVIEW = 'query { previewWallet(walletId: $id, facts: $facts) { rules { ruleId fires } } }';

function preview(slot: string, thing: Thing, given: Given, says = '"fires":', alike?: string): SurfaceRow {
  const input: Given = (id, own) => ({ input: { balances: [], ...given(id, own) } });
  return row(`Query.previewWalletRule(input.${slot})`, PREVIEW, thing, says, input, alike);
}

function stored(slot: string, given: Given): SurfaceRow {
  return preview(slot, 'wallet', given, '"fires":', STORED);
}

function storedIn(name: string, args: string): SurfaceRow[] {
  const text = `mutation { done: ${name}(${args}) { __typename ... on WalletRule { name autoTransferRule { targetWalletId } } } }`;
  return RULE_IDS.map((at) => {
    const given: Given = (id, own) => ({ rule: ruleInput(own, at, id) });
    return row(`Mutation.${name}(input.${at})`, text, 'wallet', '"__typename":"WalletRule"', given, STORED);
  });
}

/** Everything of a rule that can name a thing. */
const RULE_ROWS: SurfaceRow[] = [
  preview('ruleId', 'rule', (ruleId) => ({ ruleId }), NO_SUCH),
  ...RULE_IDS.map((at) => stored(`rule.${at}`, (id, own) => ({ rule: ruleInput(own, at, id) }))),
  stored('walletId', (walletId, own) => ({ rule: ruleInput(own), walletId })),
  stored('balances.networkCurrencyId', (id, own) => {
    return { rule: ruleInput(own), balances: [FACTS.balances(id)] };
  }),
  stored('transfers.networkCurrencyId', (id, own) => {
    return { rule: ruleInput(own), transfers: [FACTS.transfers(id)] };
  }),
  row('Query.previewWallet(walletId)', WALLET_PREVIEW, 'wallet', NO_SUCH, (id) => ({ id, facts: { balances: [] } })),
  ...(['balances', 'transfers'] as const).map((slot) => {
    const given: Given = (id) => ({ facts: { balances: [], [slot]: [FACTS[slot](id)] } });
    const text = WALLET_PREVIEW.replace('$id', '$ownWallet');
    return row(`Query.previewWallet(facts.${slot}.networkCurrencyId)`, text, 'wallet', '"rules":', given, STORED);
  }),
  change('createWalletRule(walletId)', 'walletId: $id, input: $rule', 'wallet'),
  ...storedIn('createWalletRule', 'walletId: $ownWallet, input: $rule'),
  change('replaceWalletRule(walletId)', 'walletId: $id, id: $ownRule, input: $rule', 'wallet'),
  change('replaceWalletRule(id)', 'walletId: $ownWallet, id: $id, input: $rule, ifVersion: 1', 'rule'),
  ...storedIn('replaceWalletRule', 'walletId: $ownWallet, id: $ownRule, input: $rule'),
  change('setWalletRuleStatus(id)', 'id: $id, status: DISABLED', 'rule'),
  change('assignNetwork(walletId)', 'walletId: $id, networkId: $ownNetwork', 'wallet'),
];

const VIEWER = '{username: $text, password: "long enough", role: "viewer"}';
const PEOPLE: SurfaceRow[] = [
  change('updateClient(id)', 'id: $id, input: {name: "c", grantTypes: [PASSWORD], scopes: []}', 'idleClient'),
  change('patchClient(id)', 'id: $id, input: {name: "c"}', 'idleClient'),
  change('rotateClientSecret(id)', 'id: $id', 'idleClient'),
  change('setClientStatus(id)', 'id: $id, status: DISABLED', 'idleClient'),
  change('setSupervisorStatus(id)', 'id: $id, status: DISABLED', 'supervisor'),
  change('setSupervisorPassword(id)', 'id: $id, password: "another password"', 'supervisor'),
  change('setSupervisorRole(id)', 'id: $id, role: "operator"', 'supervisor'),
  change('unlockSupervisor(id)', 'id: $id', 'supervisor'),
  change('revokeSessions(supervisorId)', 'supervisorId: $id', 'supervisor'),
  change('createSupervisor(input.username)', `input: ${VIEWER}`, 'username', '"__typename":"Supervisor"'),
  change('eraseUser(id)', 'id: $id', 'user'),
  change('cancelUserMigration(id)', 'id: $id', 'migration'),
];

/** Each names a user of its own: what a row makes is the caller's, and would be found by the next. */
function migrations(): SurfaceRow[] {
  const members = { email: 'email', externalId: 'external_id', walletAddress: 'wallet_address' } as const;
  return Object.entries(members).flatMap(([member, name], index) => {
    const user = (id: string) => {
      const given = { walletAddress: `w-of-${id}`, externalId: `x-of-${id}`, kycSent: true, [member]: id };
      return `{${Object.entries(given).map(([key, value]) => `${key}: ${JSON.stringify(value)}`)}}`;
    };
    const nth = (at: number) => (of: Things) => of.users[index + at]?.[name] ?? '';
    const one = (id: string) => `mutation { migrateUser(input: ${user(id)}) { __typename ... on User { address } } }`;
    const many = (id: string) =>
      `mutation { migrateUsers(users: [${user(id)}]) { ... on Migration { success skipped rows { edges { node { reason } } } } } }`;
    const asked = (covers: string, thing: Thing, says: string, text: (id: string) => string): SurfaceRow => {
      return { covers, thing: thingOf(thing), says, ask: (call, id) => operate(call, text(id)) };
    };
    return [
      asked(`Mutation.migrateUser(input.${member})`, nth(1), '"User"', one),
      asked(`Mutation.migrateUsers(users.${member})`, nth(4), '"success":1', many),
    ];
  });
}

const REGISTERED = '{id: $fresh, collection: TOKEN_TRANSACTIONS, type: 1, assetId: $id}';
const REGISTER = `mutation { registerTransaction(input: ${REGISTERED}) { __typename } }`;
const fresh: Given = (id) => ({ fresh: `of-${id}` });
const TRANSACTIONS: SurfaceRow[] = [
  row('Mutation.registerTransaction(input.assetId)', REGISTER, 'asset', '"__typename":"Transaction"', fresh, STORED),
  row('Subscription.transaction(id)', 'subscription { transaction(id: $id) { id } }', 'transaction', NO_SUCH),
  row(
    'Subscription.migrationProgress(id)',
    'subscription { migrationProgress(id: $id) { done } }',
    'migration',
    NO_SUCH,
  ),
];

/** Every place of the schema that can name a thing of a node, cursors apart. */
export const GRAPHQL_ROWS: readonly SurfaceRow[] = [
  ...READS,
  ...RULE_ROWS,
  ...PEOPLE,
  ...migrations(),
  ...TRANSACTIONS,
];

const PAGED =
  'accounts auditExports auditRecords assets clients migrations networkCurrencies networks supervisors transactions users wallets'.split(
    ' ',
  );
const EDGES = '{ edges { cursor } }';
/** The lists, each with a place for the arguments of its page. */
export const LISTS: Record<string, string> = {
  ...Object.fromEntries(PAGED.map((field) => [`Query.${field}`, `${field}(@) ${EDGES}`])),
  'Query.walletRules': `walletRules(walletId: $ownWallet, @) ${EDGES}`,
  'Query.walletRuleVersions': `walletRuleVersions(ruleId: $ownRule, @) ${EDGES}`,
  'Account.wallets': `account(id: $ownAccount) { list: wallets(@) ${EDGES} }`,
  'Migration.rows': `migration(id: $ownMigration) { list: rows(@) ${EDGES} }`,
  'Migration.rejectedRows': `migration(id: $ownMigration) { list: rejectedRows(@) ${EDGES} }`,
  'Transaction.events': `transaction(id: $ownTransaction) { list: events(@) ${EDGES} }`,
  'Wallet.networks': `wallet(id: $ownWallet) { list: networks(@) ${EDGES} }`,
  'Wallet.rules': `wallet(id: $ownWallet) { list: rules(@) ${EDGES} }`,
  'Asset.transactions': `asset(id: $ownAsset) { list: transactions(@) ${EDGES} }`,
  'Client.activity': `client(id: $ownClient) { list: activity(@) ${EDGES} }`,
  'Supervisor.activity': `supervisor(id: $ownSupervisor) { list: activity(@) ${EDGES} }`,
  'User.activity': `user(id: $ownUser) { list: activity(@) ${EDGES} }`,
  'Wallet.activity': `wallet(id: $ownWallet) { list: activity(@) ${EDGES} }`,
  'WalletRule.versions': `walletRule(id: $ownRule) { list: versions(@) ${EDGES} }`,
};

/** Asks for a list of a node, from a cursor on. */
export function askList(call: Call, list: string, page: string, own: Things): Promise<Answer> {
  return operate(call, `query { ${(LISTS[list] ?? '').replace('@', page)} }`, {
    ...{ ownWallet: own.wallet, ownAccount: own.account, ownMigration: own.migration },
    ...{ ownTransaction: own.transaction, ownRule: own.rule, ownAsset: own.asset, ownClient: own.idleClient },
    ...{ ownSupervisor: own.supervisor, ownUser: own.user },
  });
}

import { beforeAll, expect, it, vi } from 'vitest';
import { type Log, silentLog } from '../../src/lib/log.ts';
import { recordOf } from '../support/audit/records.ts';
import { envelope } from '../support/gateway/envelopes.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { type Portcullis, startPortcullis } from '../support/harness.ts';
import { callOf } from '../support/mcp/agents.ts';
import { addClient } from '../support/oauth/clients.ts';
import { apiClaims, signed } from '../support/oauth/jwt.ts';
import { FORM } from '../support/oauth/requests.ts';
import { BULK, newUser, SINGLE } from '../support/user-migrations/calls.ts';
import { autoTransfer, leaf } from '../support/wallet-rules/rules.ts';
import { basic, notification } from '../support/webhook/fixture.ts';

type Request = NonNullable<Parameters<Portcullis['call']>[2]> & {
  /** The method and the path. */
  to: string;
};

interface Note {
  /** 400 if absent. */
  status?: number;
  /** The reason of a 404 or 401 in the audit record and in the log. */
  reason?: string;
}

interface Mistake extends Note {
  what: string;
  request(): Request;
  says: string[];
}

/** A mistake, and what the answer says in its body, `WWW-Authenticate` or `Allow`, texts separated by `|`. */
type Row<Subject> = [what: string, subject: Subject, says: string, note?: Note];

function mistakes<Subject>(request: (subject: Subject) => Request, rows: readonly Row<Subject>[]): Mistake[] {
  return rows.map(([what, subject, says, note]) => {
    return { what, request: () => request(subject), says: says.split('|'), ...note };
  });
}

const logged: Record<string, unknown>[] = [];
const log: Log = { ...silentLog, info: (fields) => void logged.push({ ...fields }) };

const p = beforeTests(() => startPortcullis({ overrides: { log } }));
let token: string;
/** The refresh token that came with the token. */
let refreshToken: string;
let revoked: string;
/** A client without scopes, and its token. */
let weak: { client_id: string; client_secret: string };
let weakToken: string;
const existing = newUser();

beforeAll(async () => {
  const { client } = p.demo;
  const pair = (await p.call('POST', '/v2/oauth/token', { json: { grant_type: 'client_credentials', ...client } }))
    .json;
  token = pair.access_token;
  refreshToken = pair.refresh_token;
  revoked = await p.clientToken();
  await p.call('POST', '/v2/oauth/revoke', { json: { ...client, token: revoked } });
  weak = await addClient(p, { scopes: [] });
  weakToken = await p.clientToken(weak);
  await p.call('POST', SINGLE, { token, json: existing });
});

type Given = object | string | (() => object);

/** A body: JSON, or a text as it is. */
function bodyOf(given: Given): { json: object } | { body: string } {
  if (typeof given === 'string') return { body: given };
  return { json: typeof given === 'function' ? given() : given };
}

const JSON_TYPE = { 'content-type': 'application/json' };
const ACCOUNTS = 'GET /v1/accounts';
const AT = '2026-11-21T10:30:00Z';
const ZEROS = '00000000-0000-4000-8000-000000000000';
const RULE = `PUT /v1/wallets/${ZEROS}/rules/${ZEROS}`;
const OK: Note = { status: 200 };
const rules = () => `POST /v1/wallets/${p.demo.wallet_id}/rules`;
const posted = (path: string) => (given: Given) => ({
  to: `POST ${path}`,
  token,
  headers: JSON_TYPE,
  ...bodyOf(given),
});
const camel = (name: string, given: string) => `${name} is the member's name, not ${given}`;
const unauthorized = (reason: string): Note => ({ status: 401, reason });
const notFound = (reason: string): Note => ({ status: 404, reason });

const forms = mistakes<Record<string, string>>(
  (more) => {
    return { to: 'POST /v2/oauth/token', headers: { 'content-type': FORM }, body: `${new URLSearchParams(more)}` };
  },
  [
    ['grantType', { grantType: 'x' }, camel('grant_type', 'grantType')],
    ['a form over 64 KiB', { scope: 'x'.repeat(65_536) }, 'the body must be at most 65536 bytes'],
  ],
);

const INVALID = 'error="invalid_token", error_description';
const bearers = mistakes<() => string>(
  (bearer) => ({ to: ACCOUNTS, token: bearer() }),
  [
    [
      'an expired token',
      () => signed(p, apiClaims(p, { exp: 1 })),
      `${INVALID}="the token has expired"`,
      unauthorized('expired'),
    ],
    ['a revoked token', () => revoked, `${INVALID}="the token has been revoked"`, unauthorized('revoked')],
    ['a refresh token', () => refreshToken, 'refresh, but access is required', unauthorized('another_class')],
    ['a token cut short', () => token.slice(0, -1), `${INVALID}="the token is not valid"`, unauthorized('malformed')],
  ],
);

const SERVICES: Record<string, string> = {
  rules: 'X-Target-Server does not name a known service',
  accounts: 'the endpoint belongs to wallet-rules',
};
const headers = mistakes<[name: string, value: string, to?: string]>(
  ([name, value, to = rules()]) => ({ to, token, headers: { [name]: value }, json: autoTransfer() }),
  [
    ...Object.entries(SERVICES).map(([name, reason]): Row<[string, string]> => {
      return [`the service ${name}`, ['x-target-server', name], envelope('not_found'), notFound(reason)];
    }),
    ['a key that is not ASCII', ['idempotency-key', 'é'], 'Idempotency-Key|must be 1 to 255 printable ASCII'],
    ['a bare number', ['if-match', '1', RULE], 'If-Match|must be * or a list of entity tags, such as \\"1\\"'],
  ],
);

const UNKNOWN_PATHS: [what: string, to: string, reason: string][] = [
  ['a slash at its end', 'GET /v1/accounts/', 'no endpoint has this path'],
  ['another method', `GET /v1/wallets/${ZEROS}/rules`, 'the path has only POST'],
  ['an encoded slash', 'GET /v1%2Faccounts', 'the path is ambiguous'],
];
const paths = mistakes<string | (() => string)>(
  (to) => ({ to: typeof to === 'string' ? to : to(), token }),
  [
    ...UNKNOWN_PATHS.map(([what, to, reason]): Row<string> => [what, to, envelope('not_found'), notFound(reason)]),
    [
      'a wallet id that is not a UUID',
      () => `POST /v1/wallets/w1/networks/${p.demo.network_id}`,
      '{"path":"wallet_id","message":"must be a UUID',
    ],
    [
      'a network of another chain',
      () => `POST /v1/wallets/${p.demo.wallet_id}/networks/${p.demo.other_chain_network_id}`,
      'network_id|chain',
    ],
    ['page=0', `${ACCOUNTS}?page=0`, '"page"|must be a whole number from 1 to'],
    ['limit=1000', `${ACCOUNTS}?limit=1000`, '"limit"|must be a whole number from 1 to 100'],
    ['perPage for limit', `${ACCOUNTS}?perPage=5`, '"per_page":10', OK],
  ],
);

const withLogic = (logic: object) => autoTransfer({}, { rule_logic: logic });
const LOGIC = 'auto_transfer_rule.rule_logic';
const wrongRules = mistakes<Given>(
  (given) => ({ ...posted('')(given), to: rules() }),
  [
    ['no body', '', 'must be JSON, but is empty'],
    ['a trailing comma', '{\n  "name": "x",\n}', 'must be JSON, but is malformed at line 3 column 1'],
    [
      'networkId',
      autoTransfer({ network_id: undefined, networkId: ZEROS }),
      `"path":"network_id","message":"is required: a UUID|${camel('network_id', 'networkId')}`,
    ],
    [
      'autoTransferRule',
      autoTransfer({ auto_transfer_rule: undefined, autoTransferRule: {} }),
      camel('auto_transfer_rule', 'autoTransferRule'),
    ],
    ['without its object', autoTransfer({ auto_transfer_rule: null }), 'is required if type is auto_transfer'],
    ['an unknown operator', withLogic(leaf({ op: 'below' })), 'rule_logic.op|must be one of lt, lte, gt, gte'],
    ['an amount as text', autoTransfer({}, { amount: '50' }), '"auto_transfer_rule.amount"|must be a number'],
    ['an unknown type', autoTransfer({ type: 'transfer' }), 'must be one of auto_transfer, permissionless_transfer'],
    ['no value', withLogic({ and: [leaf({ value: undefined })] }), `"${LOGIC}.and[0].value"|is required: a number`],
    [
      'AND for and',
      withLogic({ AND: [leaf()] }),
      `"${LOGIC}.and"|is required: a group of conditions; ${camel('and', 'AND')}`,
    ],
    ['a priority of 0', autoTransfer({ priority: 0 }), '"priority"|must be a whole number from 1 to 100'],
  ],
);

const USER = { email: 'a@b.example' };
const users = mistakes<Given>(posted(SINGLE), [
  [
    'walletAddress',
    { ...USER, walletAddress: '0x1' },
    `"path":"wallet_address","message":"is required: a string|${camel('wallet_address', 'walletAddress')}`,
  ],
  ['externalId', { wallet_address: '0x1', externalId: 'x' }, envelope('missing_email_and_external_id')],
  ['kyc_sent as text', { ...newUser(), kyc_sent: 'yes' }, '"kyc_sent"|must be a boolean'],
  ['an email that is taken', newUser({ email: existing.email }), 'duplicate_email'],
  ['over 1 MiB', newUser({ name: 'x'.repeat(1024 * 1024) }), 'must be at most 1048576 bytes'],
]);

const NO_ADDRESS = '{"path":"users[1].wallet_address","message":"is required: a string"}';
const bulks = mistakes<Given>(posted(BULK), [
  ['user for users', { user: [newUser()] }, '{"path":"users","message":"is required: an array"}'],
  ['no row', { users: [] }, '"users"|must have at least one row'],
  ['501 rows', { users: Array.from({ length: 501 }, () => ({})) }, '"users"|must have at most 500 rows'],
  ['no wallet_address', { users: [newUser(), USER] }, NO_ADDRESS],
  ['Wallet_Address', { users: [{ ...USER, Wallet_Address: '0x1' }] }, camel('wallet_address', 'Wallet_Address')],
]);

const notifications = mistakes<object>(
  (members) => {
    const authorization = basic(p.webhook.username, p.webhook.password);
    return { to: 'POST /v2/webhooks/custodial', headers: { authorization }, json: notification(members) };
  },
  [
    [
      'createdAt',
      { created_at: undefined, createdAt: AT },
      `is required: an ISO 8601 date and time|${camel('created_at', 'createdAt')}`,
    ],
  ],
);

const CREATE_RULE = `mutation ($logic: JSON!) {
  createWalletRule(walletId: "${ZEROS}", input: {
    name: "x", type: "auto_transfer", networkId: "${ZEROS}", networkCurrencyId: "${ZEROS}",
    autoTransferRule: { type: "auto", ruleLogic: $logic, amount: 1, targetWalletId: "${ZEROS}" }
  }) { __typename ... on ValidationError { issues { path message } } }
}`;
const created = (logic: object) => ({ query: CREATE_RULE, variables: { logic } });
const RULE_OF = 'mutation ($input: WalletRuleInput!) { createWalletRule(walletId: "x", input: $input) { __typename } }';
const ACCOUNT = 'query ($id: ID!) { account(id: $id) { id } }';
const operations = mistakes<Given>(posted('/graphql'), [
  ['a member', { query: RULE_OF, variables: { input: { name: 'x' } } }, '\\"type\\" is required'],
  ['no query', { variables: {} }, 'query is required'],
  ['a malformed operation', '{"query": {me}', 'the body must be JSON, but is malformed at line 1 column 12'],
  ['an unknown field', { query: '{ me { node_id } }' }, 'Did you mean \\"nodeId\\"'],
  ['without a variable', { query: ACCOUNT }, 'Variable \\"$id\\"|a value of type \\"ID!\\" is required'],
  ['a page of 1000', { query: '{ accounts(first: 1000) { totalCount } }' }, '0 to 100 is allowed'],
  [
    'no op',
    created({ and: [leaf({ op: undefined })] }),
    '"path":["autoTransferRule","ruleLogic","and","0","op"],"message":"is required: a string"',
    OK,
  ],
  [
    'networkCurrencyId',
    created(leaf({ network_currency_id: undefined, networkCurrencyId: AT })),
    camel('network_currency_id', 'networkCurrencyId'),
    OK,
  ],
]);

const ACCEPT = { ...JSON_TYPE, accept: 'application/json, text/event-stream' };
const noArgument = (given: string, tool: string, name: string) =>
  `${given}: is no argument of ${tool}: ${name} is the member's name`;
const messages = mistakes<Given>(
  (given) => ({ to: 'POST /v2/mcp', token: p.demo.client.client_secret, headers: ACCEPT, ...bodyOf(given) }),
  [
    ['a malformed message', '{"jsonrpc": 2.0.0}', 'must be JSON, but is malformed at line 1 column 16'],
    [
      'a call without a name',
      { jsonrpc: '2.0', id: 1, method: 'tools/call', params: {} },
      'params.name: is required: string',
      OK,
    ],
    ['an unknown tool', callOf('accounts'), 'there is no tool accounts: see tools/list', OK],
    ['without an argument', callOf('get_wallet_rule'), 'rule_id: is required: a UUID', OK],
    ['ruleId', callOf('get_wallet_rule', { ruleId: 'x' }), noArgument('ruleId', 'get_wallet_rule', 'rule_id'), OK],
    [
      'includeTotal',
      callOf('list_accounts', { includeTotal: true }),
      noArgument('includeTotal', 'list_accounts', 'include_total'),
      OK,
    ],
  ],
);

const others = mistakes<() => Omit<Request, 'to'> & { to?: string }>(
  (request) => ({ to: 'POST /v2/mcp', ...request() }),
  [
    [
      'an MCP session',
      () => ({ token: p.demo.client.client_secret, headers: { ...ACCEPT, 'mcp-session-id': 'x' }, json: {} }),
      envelope('not_found'),
      notFound('sessions are not supported'),
    ],
    [
      'a tool without its scope',
      () => ({ token: weak.client_secret, headers: ACCEPT, json: callOf('list_accounts') }),
      'the credentials lack the scope accounts:read',
      OK,
    ],
    [
      'an operation without its permission',
      () => ({ to: 'POST /graphql', token: weakToken, json: { query: '{ accounts { totalCount } }' } }),
      '"FORBIDDEN"|"permission":"accounts:read"',
      OK,
    ],
  ],
);

/** What integrators do wrong, each with the answer that they get. */
const MISTAKES: readonly Mistake[] = [
  ...[forms, bearers, headers, paths, wrongRules, users, bulks, notifications, operations, messages, others],
].flat();

function answerTo(mistake: Mistake, more: Record<string, string> = {}) {
  const { to, headers, ...request } = mistake.request();
  const [method = '', path = ''] = to.split(' ');
  return p.call(method, path, { ...request, headers: { ...more, ...headers } });
}

it.each(MISTAKES.map((mistake) => [mistake.what, mistake] as const))(
  'D2-11 D2-12 D2-13 D2-14 D3-11 D3-32: %s: the response says how to fix it, as far as the contract allows',
  async (_what, mistake) => {
    const { status, headers, text } = await answerTo(mistake);
    const told = `${headers.get('www-authenticate') ?? headers.get('allow')}\n${text}`;
    expect([status, told]).toEqual([mistake.status ?? 400, expect.stringContaining(mistake.says[0] ?? '')]);
    for (const words of mistake.says) expect(told).toContain(words);
  },
);

it('D2-07 D2-12 D3-32: the reason of a 404 or 401 is only in the log and in the audit record', async () => {
  const reasons = MISTAKES.filter(({ reason }) => reason !== undefined);
  for (const [index, mistake] of reasons.entries()) {
    const { text } = await answerTo(mistake, { 'x-correlation-id': `mistake-${index}` });
    expect(text).not.toContain(mistake.reason);
  }
  for (const [index, { status, reason }] of reasons.entries()) {
    const id = `mistake-${index}`;
    expect((await recordOf(p, id)).headers).toMatchObject({ ':reason': reason });
    await vi.waitFor(() =>
      expect(logged.find(({ correlation_id }) => correlation_id === id)).toMatchObject({ status, reason }),
    );
  }
});

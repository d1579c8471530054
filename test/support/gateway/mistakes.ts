import type { Portcullis } from '../harness.ts';
import { addClient } from '../oauth/clients.ts';
import { apiClaims, signed } from '../oauth/jwt.ts';
import { basicOf, FORM } from '../oauth/requests.ts';
import { newUser } from '../user-migrations/calls.ts';
import { autoTransfer, leaf } from '../wallet-rules/rules.ts';

/** What an integrator has, to make mistakes with. */
export interface Desk {
  p: Portcullis;
  /** An access token, and the refresh token that came with it. */
  token: string;
  refreshToken: string;
  /** A token that was good, and was revoked. */
  revoked: string;
  /** A client without any scope, and its token. */
  weak: { client_id: string; client_secret: string };
  weakToken: string;
  /** A user who exists already. */
  user: { wallet_address: string; email: string };
}

export async function desk(p: Portcullis): Promise<Desk> {
  const { client } = p.demo;
  const grant = { grant_type: 'client_credentials', ...client };
  const { json } = await p.call('POST', '/v2/oauth/token', { json: grant });
  const token = json.access_token;
  const revoked = await p.clientToken();
  await p.call('POST', '/v2/oauth/revoke', { json: { ...client, token: revoked } });
  const weak = await addClient(p, { scopes: [] });
  const user = newUser();
  await p.call('POST', '/v2/users/migrate/with-wallet', { token, json: user });
  return { p, token, refreshToken: json.refresh_token, revoked, weak, weakToken: await p.clientToken(weak), user };
}

type Request = NonNullable<Parameters<Portcullis['call']>[2]> & {
  /** The method and the path. */
  to: string;
};

interface Note {
  status?: number;
  /** Why the answer alone does not tell how to mend it: the contract closes its body, or telling would help to guess. */
  closed?: 'byte-equal 404' | 'documented reason' | 'ignored' | 'no guessing';
  /** What the audit record and the log say of a 404 or 401. */
  reason?: string;
}

export interface Mistake extends Note {
  what: string;
  status: number;
  request(desk: Desk): Request;
  /** What the answer says, in its body, `WWW-Authenticate` or `Allow`. */
  says: string[];
}

/** A mistake, what the answer says, and what is particular about it. The status is 400 unless the note has another. */
type Row<Subject> = [what: string, subject: Subject, says: string | string[], note?: Note];

function mistakes<Subject>(
  kind: string,
  request: (subject: Subject, desk: Desk) => Request,
  rows: readonly Row<Subject>[],
  status = 400,
): Mistake[] {
  return rows.map(([what, subject, says, note]) => {
    return { what: `${kind}: ${what}`, status, request: (d) => request(subject, d), says: [says].flat(), ...note };
  });
}

type Given = object | string | ((desk: Desk) => object | string);

/** A body: JSON, or the text of a string as it is. */
function bodyOf(given: Given, d: Desk): { json: object } | { body: string } {
  const body = typeof given === 'function' ? given(d) : given;
  return typeof body === 'string' ? { body } : { json: body };
}

const JSON_TYPE = { 'content-type': 'application/json' };
const TOKEN = 'POST /v2/oauth/token';
const ACCOUNTS = 'GET /v1/accounts';
const MIB = 'x'.repeat(1024 * 1024);
const AT = '2026-11-21T10:30:00Z';
const ME = '{ me { nodeId } }';
const ZEROS = '00000000-0000-4000-8000-000000000000';
const envelope = (message: string) => `{"code":-1,"domain":0,"message":"${message}"}`;
const NOT_VALID = 'error="invalid_token", error_description="the token is not valid"';
const CLOSED_404: Note = { status: 404, closed: 'byte-equal 404' };
const rulesOf = ({ p }: Desk) => `/v1/wallets/${p.demo.wallet_id}/rules`;

type Form = Record<string, string>;

function without(given: Form, name: string): Form {
  return Object.fromEntries(Object.entries(given).filter(([other]) => other !== name));
}

const query = (given: Form) => new URLSearchParams(given).toString();

const forms = mistakes<(good: Form) => Form | string>(
  'token, form',
  (change, { p }) => {
    const given = change({ grant_type: 'client_credentials', ...p.demo.client });
    return { to: TOKEN, headers: { 'content-type': FORM }, body: typeof given === 'string' ? given : query(given) };
  },
  [
    ['without grant_type', (good) => without(good, 'grant_type'), 'grant_type is required'],
    [
      'grantType',
      (good) => ({ ...without(good, 'grant_type'), grantType: 'x' }),
      "grant_type is the member's name, not grantType",
    ],
    ['client_id twice', (good) => `${query(good)}&client_id=x`, 'client_id must be given once'],
    ['a client_id that is no UUID', (good) => ({ ...good, client_id: 'x' }), 'client_id must be a UUID'],
    ['no username', (good) => ({ ...good, grant_type: 'password', password: 'x' }), 'username is required'],
    ['over 64 KiB', (good) => ({ ...good, scope: 'x'.repeat(65_536) }), 'the body must be at most 65536 bytes'],
    ['a % that escapes nothing', (good) => `${query(good)}&scope=5%`, ['only in escapes', '%25']],
  ],
);

const OAUTH = mistakes<(desk: Desk) => Request>('OAuth', (request, d) => request(d), [
  [
    'the secret in Basic and in the body',
    ({ p }) => ({
      to: TOKEN,
      headers: { authorization: basicOf(p.demo.client) },
      json: { grant_type: 'client_credentials', client_secret: 'x' },
    }),
    'client_secret must not be given twice',
  ],
  [
    'another Content-Type',
    ({ p }) => ({
      to: TOKEN,
      headers: { authorization: basicOf(p.demo.client), 'content-type': 'text/plain' },
      body: 'x',
    }),
    'Content-Type must be application/json or application/x-www-form-urlencoded',
  ],
]);

const bearers = mistakes<(desk: Desk) => string>(
  'Authorization',
  (authorization, d) => ({ to: ACCOUNTS, headers: { authorization: authorization(d) } }),
  [
    [
      'an expired token',
      ({ p }) => `Bearer ${signed(p, apiClaims(p, { exp: 1 }))}`,
      'error="invalid_token", error_description="the token has expired"',
      { reason: 'expired' },
    ],
    [
      'a revoked token',
      ({ revoked }) => `Bearer ${revoked}`,
      'error_description="the token has been revoked"',
      { reason: 'revoked' },
    ],
    [
      'a refresh token',
      ({ refreshToken }) => `Bearer ${refreshToken}`,
      'of another class: refresh, where access is needed',
      { reason: 'another_class' },
    ],
    [
      'a token cut short',
      ({ token }) => `Bearer ${token.slice(0, -1)}`,
      NOT_VALID,
      { closed: 'no guessing', reason: 'malformed' },
    ],
  ],
  401,
);

const headers = mistakes<[name: string, value: string, to?: string]>(
  'header',
  ([name, value, to], d) => {
    const given = { ...JSON_TYPE, [name]: value };
    return { to: to ?? `POST ${rulesOf(d)}`, token: d.token, headers: given, body: JSON.stringify(autoTransfer()) };
  },
  [
    [
      'an unknown service',
      ['x-target-server', 'rules'],
      envelope('not_found'),
      { ...CLOSED_404, reason: 'X-Target-Server names no service' },
    ],
    [
      'another service',
      ['x-target-server', 'accounts'],
      envelope('not_found'),
      { ...CLOSED_404, reason: 'the endpoint is of wallet-rules' },
    ],
    ['too long', ['x-correlation-id', 'x'.repeat(1_025)], ['X-Correlation-ID', 'must have at most 1024 bytes']],
    ['compressed', ['content-encoding', 'gzip'], ['Content-Encoding', 'must be identity']],
    ['not ASCII', ['idempotency-key', 'é'], ['Idempotency-Key', 'must be 1 to 255 printable ASCII']],
    [
      'a bare number',
      ['if-match', '1', `PUT /v1/wallets/${ZEROS}/rules/${ZEROS}`],
      ['If-Match', 'must be * or a list of entity tags, such as \\"1\\"'],
    ],
  ],
);

const unknownPaths = mistakes<string>(
  'path',
  (to, { token }) => ({ to, token }),
  (
    [
      ['a slash at its end', 'GET /v1/accounts/', 'no endpoint has this path'],
      ['another method', `GET /v1/wallets/${ZEROS}/rules`, 'the path has only POST'],
      ['an encoded slash', 'GET /v1%2Faccounts', 'the path can be read in two ways'],
    ] as const
  ).map(([what, to, reason]) => [what, to, envelope('not_found'), { ...CLOSED_404, reason }]),
);

const paths = mistakes<(demo: Portcullis['demo']) => string>(
  'path',
  (to, { p, token }) => ({ to: to(p.demo), token }),
  [
    [
      'a wallet that is no UUID',
      (demo) => `POST /v1/wallets/w1/networks/${demo.network_id}`,
      '{"path":"wallet_id","message":"must be a UUID',
    ],
    [
      'a network of another chain',
      (demo) => `POST /v1/wallets/${demo.wallet_id}/networks/${demo.other_chain_network_id}`,
      ['network_id', 'chain'],
    ],
    ['page=0', () => `${ACCOUNTS}?page=0`, ['"page"', 'must be a whole number from 1 to']],
    ['limit=1000', () => `${ACCOUNTS}?limit=1000`, ['"limit"', 'must be a whole number from 1 to 100']],
    ['perPage for limit', () => `${ACCOUNTS}?perPage=5`, '"per_page":10', { status: 200, closed: 'ignored' }],
  ],
);

const withLogic = (logic: object) => autoTransfer({}, { rule_logic: logic });
const camel = (name: string, given: string) => `${name} is the member's name, not ${given}`;

const rules = mistakes<Given>(
  'rule',
  (given, d) => ({ to: `POST ${rulesOf(d)}`, token: d.token, headers: JSON_TYPE, ...bodyOf(given, d) }),
  [
    ['no body', '', 'must be JSON, and is empty'],
    ['a comma too many', '{\n  "name": "x",\n}', 'must be JSON, and is malformed at line 3 column 1'],
    [
      'networkId',
      autoTransfer({ network_id: undefined, networkId: ZEROS }),
      ['"path":"network_id","message":"is required: a UUID', camel('network_id', 'networkId')],
    ],
    [
      'autoTransferRule',
      autoTransfer({ auto_transfer_rule: undefined, autoTransferRule: {} }),
      camel('auto_transfer_rule', 'autoTransferRule'),
    ],
    ['without its object', autoTransfer({ auto_transfer_rule: null }), 'is required where type is auto_transfer'],
    ['an unknown operator', withLogic(leaf({ op: 'below' })), ['rule_logic.op', 'must be one of lt, lte, gt, gte']],
    ['an amount as text', autoTransfer({}, { amount: '50' }), ['"auto_transfer_rule.amount"', 'must be a number']],
    ['an unknown type', autoTransfer({ type: 'transfer' }), 'must be one of auto_transfer, permissionless_transfer'],
    [
      'no value',
      withLogic({ and: [leaf(), leaf({ value: undefined })] }),
      ['"auto_transfer_rule.rule_logic.and[1].value"', 'is required: a number'],
    ],
    [
      'AND for and',
      withLogic({ AND: [leaf()] }),
      ['"auto_transfer_rule.rule_logic.and"', `is required: a group of conditions; ${camel('and', 'AND')}`],
    ],
    ['a priority of 0', autoTransfer({ priority: 0 }), ['"priority"', 'must be a whole number from 1 to 100']],
  ],
);

const migrations = mistakes<Given>(
  'migration',
  (given, d) => ({ to: 'POST /v2/users/migrate/with-wallet', token: d.token, ...bodyOf(given, d) }),
  [
    [
      'walletAddress',
      { email: 'a@b.example', walletAddress: '0x1' },
      ['"path":"wallet_address","message":"is required: a string', camel('wallet_address', 'walletAddress')],
    ],
    [
      'externalId',
      { wallet_address: '0x1', externalId: 'x' },
      envelope('missing_email_and_external_id'),
      { closed: 'documented reason' },
    ],
    ['kyc_sent as text', { ...newUser(), kyc_sent: 'yes' }, ['"kyc_sent"', 'must be a boolean']],
    ['an email that is taken', ({ user }) => newUser({ email: user.email }), 'duplicate_email'],
    ['over 1 MiB', { ...newUser(), name: MIB }, 'must be at most 1048576 bytes'],
  ],
);

const bulks = mistakes<Given>(
  'bulk migration',
  (given, d) => ({ to: 'POST /v2/users/migrate/with-wallet/bulk', token: d.token, ...bodyOf(given, d) }),
  [
    ['user for users', { user: [newUser()] }, '{"path":"users","message":"is required: an array"}'],
    ['no row', { users: [] }, ['"users"', 'must have at least one row']],
    ['501 rows', { users: Array.from({ length: 501 }, () => ({})) }, ['"users"', 'must have at most 500 rows']],
    [
      'no wallet_address',
      { users: [newUser(), { email: 'a@b.example' }] },
      '{"path":"users[1].wallet_address","message":"is required: a string"}',
    ],
    [
      'Wallet_Address',
      { users: [{ email: 'a@b.example', Wallet_Address: '0x1' }] },
      ['"users[0].wallet_address"', camel('wallet_address', 'Wallet_Address')],
    ],
  ],
);

const notifications = mistakes<object>(
  'webhook',
  (changes, { p }) => ({
    to: 'POST /v2/webhooks/custodial',
    headers: { authorization: basicOf({ client_id: p.webhook.username, client_secret: p.webhook.password }) },
    json: { id: 'x', type: 1, status: 1, created_at: AT, updated_at: AT, ...changes },
  }),
  [
    [
      'createdAt',
      { created_at: undefined, createdAt: AT },
      ['is required: an ISO 8601 date and time', camel('created_at', 'createdAt')],
    ],
  ],
);

const CREATE_RULE = `mutation ($logic: JSON!) {
  createWalletRule(walletId: "${ZEROS}", input: {
    name: "x", type: "auto_transfer", networkId: "${ZEROS}", networkCurrencyId: "${ZEROS}",
    autoTransferRule: { type: "auto", ruleLogic: $logic, amount: 1, targetWalletId: "${ZEROS}" }
  }) { __typename ... on ValidationError { issues { path message } } }
}`;
const RULE_OF = 'mutation ($input: WalletRuleInput!) { createWalletRule(walletId: "x", input: $input) { __typename } }';
const ACCOUNT = 'query ($id: ID!) { account(id: $id) { id } }';
const OK: Note = { status: 200 };

const operations = mistakes<Given>(
  'GraphQL',
  (given, d) => ({ to: 'POST /graphql', token: d.token, headers: JSON_TYPE, ...bodyOf(given, d) }),
  [
    ['a member', { query: RULE_OF, variables: { input: { name: 'x' } } }, '\\"type\\" is required'],
    ['no query', { variables: {} }, 'query is required'],
    ['operation_name', { query: ME, operation_name: 'x' }, "operationName is the member's name"],
    ['malformed', '{"query": {me}', 'the body must be JSON, and is malformed at line 1 column 12'],
    ['an unknown field', { query: '{ me { node_id } }' }, 'Did you mean \\"nodeId\\"'],
    ['without a variable', { query: ACCOUNT }, ['Variable \\"$id\\"', 'a value of type \\"ID!\\" is required']],
    ['a page of 1000', { query: '{ accounts(first: 1000) { totalCount } }' }, '0 to 100 are allowed'],
    [
      'no op',
      { query: CREATE_RULE, variables: { logic: { and: [leaf({ op: undefined })] } } },
      '"path":["autoTransferRule","ruleLogic","and","0","op"],"message":"is required: a string"',
      OK,
    ],
    [
      'networkCurrencyId',
      { query: CREATE_RULE, variables: { logic: leaf({ network_currency_id: undefined, networkCurrencyId: AT }) } },
      camel('network_currency_id', 'networkCurrencyId'),
      OK,
    ],
  ],
);

const ACCEPT = { accept: 'application/json, text/event-stream' };
const call = (name: string, args: object) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name, arguments: args },
});

const messages = mistakes<Given>(
  'MCP',
  (given, d) => ({
    ...{ to: 'POST /v2/mcp', token: d.p.demo.client.client_secret, headers: { ...ACCEPT, ...JSON_TYPE } },
    ...bodyOf(given, d),
  }),
  [
    ['malformed', '{"jsonrpc": 2.0.0}', 'must be JSON, and is malformed at line 1 column 16'],
    [
      'a call without a name',
      { jsonrpc: '2.0', id: 1, method: 'tools/call', params: {} },
      'params.name: is required: string',
      OK,
    ],
    ['an unknown tool', call('accounts', {}), 'there is no tool accounts: tools/list has them all', OK],
    ['without an argument', call('get_account', {}), 'account_id: is required: a UUID', OK],
    [
      'accountId',
      call('get_account', { accountId: 'x' }),
      "accountId: is no argument of get_account: account_id is the member's name",
      OK,
    ],
    [
      'includeTotal',
      call('list_accounts', { includeTotal: true }),
      "includeTotal: is no argument of list_accounts: include_total is the member's name",
      OK,
    ],
  ],
);

const others = mistakes<(desk: Desk) => Request>('a mistake', (request, d) => request(d), [
  [
    'a session of MCP',
    ({ p }) => ({
      to: 'POST /v2/mcp',
      token: p.demo.client.client_secret,
      headers: { ...ACCEPT, 'mcp-session-id': 'x' },
      json: {},
    }),
    envelope('not_found'),
    { ...CLOSED_404, reason: 'there are no sessions' },
  ],
  [
    'a tool without its scope',
    ({ weak }) => ({ to: 'POST /v2/mcp', token: weak.client_secret, headers: ACCEPT, json: call('list_accounts', {}) }),
    'the client lacks the scope accounts:read',
    OK,
  ],
  [
    'an operation without its permission',
    ({ weakToken }) => ({ to: 'POST /graphql', token: weakToken, json: { query: '{ accounts { totalCount } }' } }),
    ['"FORBIDDEN"', '"permission":"accounts:read"'],
    OK,
  ],
]);

/** What integrators do wrong, each with the answer that they get. */
export const MISTAKES: readonly Mistake[] = [
  ...[forms, OAUTH, bearers, headers, unknownPaths, paths, rules, migrations, bulks, notifications],
  ...[operations, messages, others],
].flat();

import { randomUUID } from 'node:crypto';
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
  /** The user who is there already. */
  user: { wallet_address: string; email: string };
}

export async function desk(p: Portcullis): Promise<Desk> {
  const { client } = p.demo;
  const post = async (path: string, json: object) => (await p.call('POST', path, { json })).json;
  const { access_token: token, refresh_token: refreshToken } = await post('/v2/oauth/token', {
    grant_type: 'client_credentials',
    ...client,
  });
  const revoked = await p.clientToken();
  await post('/v2/oauth/revoke', { ...client, token: revoked });
  const weak = await addClient(p, { scopes: [] });
  const user = newUser();
  await p.call('POST', '/v2/users/migrate/with-wallet', { token, json: user });
  return { p, token, refreshToken, revoked, weak, weakToken: await p.clientToken(weak), user };
}

interface Request {
  /** The method and the path. */
  to: string;
  token?: string;
  headers?: Record<string, string>;
  json?: unknown;
  body?: string;
}

export interface Mistake {
  what: string;
  request(desk: Desk): Request;
  status: number;
  /** What the answer says, in its body, `WWW-Authenticate` or `Allow`. */
  says: string[];
  /** Why the answer alone does not tell how to mend it: the contract closes its body, or telling would help to guess. */
  closed?: 'three members' | 'byte-equal 404' | 'documented reason' | 'ignored' | 'no guessing';
  /** What the audit record and the log say of a 404 or 401. */
  reason?: string;
}

const TOKEN = 'POST /v2/oauth/token';
const THREE = '{"code":-1,"domain":0,"message":"invalid_request"}';
const NOT_FOUND = '{"code":-1,"domain":0,"message":"not_found"}';
const NOT_VALID = 'error="invalid_token", error_description="the token is not valid"';

type Parameters = Record<string, string> | string;

/** A form for a token, of the demo client but for what is given. */
function form(what: string, change: (good: Record<string, string>) => Parameters, ...says: string[]): Mistake {
  return {
    what: `token, form: ${what}`,
    request({ p }) {
      const given = change({ grant_type: 'client_credentials', ...p.demo.client });
      const body = typeof given === 'string' ? given : new URLSearchParams(given).toString();
      return { to: TOKEN, headers: { 'content-type': FORM }, body };
    },
    status: 400,
    says: ['"error":"invalid_request"', ...says],
  };
}

function without(given: Record<string, string>, name: string): Record<string, string> {
  return Object.fromEntries(Object.entries(given).filter(([other]) => other !== name));
}

const tokenCalls: Mistake[] = [
  form('without grant_type', (good) => without(good, 'grant_type'), 'grant_type is required'),
  form(
    'grantType for grant_type',
    (good) => ({ ...without(good, 'grant_type'), grantType: 'password' }),
    "grant_type is the member's name, not grantType",
  ),
  form('client_id twice', (good) => `${new URLSearchParams(good)}&client_id=x`, 'client_id must be given once'),
  form('a client_id that is no UUID', (good) => ({ ...good, client_id: 'x' }), 'client_id must be a UUID'),
  form('an empty client_secret', (good) => ({ ...good, client_secret: '' }), 'client_secret is required'),
  form('no username', (good) => ({ ...good, grant_type: 'password', password: 'x' }), 'username is required'),
  form('no refresh_token', (good) => ({ ...good, grant_type: 'refresh_token' }), 'refresh_token is required'),
  form('over 64 KiB', (good) => ({ ...good, scope: 'x'.repeat(65_536) }), 'the body must be at most 65536 bytes'),
  form('a % that escapes nothing', (good) => `${new URLSearchParams(good)}&scope=5%`, 'only in escapes', '%25'),
  {
    ...form('an unknown grant', (good) => ({ ...good, grant_type: 'authorization_code' })),
    status: 403,
    says: ['"error":"unsupported_grant_type"', 'password, client_credentials, refresh_token'],
  },
  {
    ...form('a wrong secret', (good) => ({ ...good, client_secret: 'wrong' })),
    status: 401,
    says: ['"error":"invalid_client"'],
    closed: 'no guessing',
  },
  {
    ...form('an unknown client', (good) => ({ ...good, client_id: randomUUID() })),
    status: 401,
    says: ['"error":"invalid_client"'],
    closed: 'no guessing',
  },
  {
    what: 'token, Basic: the secret in the body as well',
    request: ({ p }) => ({
      to: TOKEN,
      headers: { authorization: basicOf(p.demo.client) },
      json: { grant_type: 'client_credentials', client_secret: 'x' },
    }),
    status: 400,
    says: ['client_secret must not be given twice'],
  },
  {
    what: 'token, Basic: another Content-Type',
    request: ({ p }) => ({
      to: TOKEN,
      headers: { authorization: basicOf(p.demo.client), 'content-type': 'text/plain' },
      body: 'grant_type=client_credentials',
    }),
    status: 400,
    says: ['Content-Type must be application/json or application/x-www-form-urlencoded'],
  },
  {
    what: 'token, JSON: without grant_type',
    request: ({ p }) => ({ to: TOKEN, json: p.demo.client }),
    status: 400,
    says: [THREE],
    closed: 'three members',
  },
  {
    what: 'token, JSON: malformed',
    request: () => ({ to: TOKEN, headers: { 'content-type': 'application/json' }, body: 'grant_type=password' }),
    status: 400,
    says: [THREE],
    closed: 'three members',
  },
  {
    what: 'revoke: without token',
    request: ({ p }) => ({ to: 'POST /v2/oauth/revoke', json: p.demo.client }),
    status: 400,
    says: ['{"path":"token","message":"is required: a string"}', '"error_description":"token is required: a string"'],
  },
];

const ACCOUNTS = 'GET /v1/accounts';

function bearer(what: string, token: (desk: Desk) => string, reason: string | undefined, ...says: string[]): Mistake {
  return {
    ...(reason && { reason }),
    what: `Authorization: ${what}`,
    request: (given) => ({ to: ACCOUNTS, headers: { authorization: token(given) } }),
    status: 401,
    says,
  };
}

function header(what: string, name: string, value: string, ...says: string[]): Mistake {
  return {
    what: `${name}: ${what}`,
    request: ({ p, token }) => ({
      to: `POST /v1/wallets/${p.demo.wallet_id}/rules`,
      token,
      headers: { 'content-type': 'application/json', [name]: value },
      body: JSON.stringify(autoTransfer()),
    }),
    status: 400,
    says,
  };
}

const headers: Mistake[] = [
  { ...bearer('none', () => '', undefined), request: () => ({ to: ACCOUNTS }), says: ['Bearer\n'] },
  bearer('a token without Bearer', ({ token }) => token, undefined, 'Bearer\n'),
  bearer(
    'an expired token',
    ({ p }) => `Bearer ${signed(p, apiClaims(p, { exp: 1 }))}`,
    'expired',
    'error="invalid_token", error_description="the token has expired"',
  ),
  bearer(
    'a revoked token',
    ({ revoked }) => `Bearer ${revoked}`,
    'revoked',
    'error_description="the token has been revoked"',
  ),
  bearer(
    'a refresh token',
    ({ refreshToken }) => `Bearer ${refreshToken}`,
    'another_class',
    'error_description="the token is of another class: refresh, where access is needed"',
  ),
  bearer(
    'a discover token',
    ({ p }) => {
      const { current: secret } = p.service.context.secrets.jwt.discover;
      return `Bearer ${signed(p, apiClaims(p, { token_use: undefined }), { secret })}`;
    },
    'another_class',
    'error_description="the token is of another class: discover, where user or legacy is needed"',
  ),
  {
    ...bearer('a token cut short', ({ token }) => `Bearer ${token.slice(0, -1)}`, 'malformed', NOT_VALID),
    closed: 'no guessing',
  },
  {
    ...bearer('a client secret', ({ p }) => `Bearer ${p.demo.client.client_secret}`, 'malformed', NOT_VALID),
    closed: 'no guessing',
  },
  {
    ...bearer('a token without the scope', ({ weakToken }) => `Bearer ${weakToken}`, undefined),
    status: 403,
    says: ['error="insufficient_scope"', 'scope="accounts:read"'],
  },
  {
    ...header('an unknown service', 'x-target-server', 'rules', NOT_FOUND),
    status: 404,
    closed: 'byte-equal 404',
    reason: 'X-Target-Server names no service',
  },
  {
    ...header('another service', 'x-target-server', 'accounts', NOT_FOUND),
    status: 404,
    closed: 'byte-equal 404',
    reason: 'the endpoint is of wallet-rules',
  },
  header('too long', 'x-correlation-id', 'x'.repeat(1_025), 'X-Correlation-ID', 'must have at most 1024 bytes'),
  header('another one', 'content-type', 'text/plain', 'Content-Type', 'must be application/json'),
  header('compressed', 'content-encoding', 'gzip', 'Content-Encoding', 'must be identity'),
  header('a space in it', 'idempotency-key', 'é', 'Idempotency-Key', 'must be 1 to 255 printable ASCII'),
  {
    ...header('a bare number', 'if-match', '1', 'If-Match', 'must be * or a list of entity tags, such as \\"1\\"'),
    request: ({ p, token }) => ({
      to: `PUT /v1/wallets/${p.demo.wallet_id}/rules/${randomUUID()}`,
      token,
      headers: { 'if-match': '1' },
      json: autoTransfer(),
    }),
  },
];

function path(what: string, to: (desk: Desk) => string, reason: string): Mistake {
  return {
    what: `path: ${what}`,
    request: (given) => ({ to: to(given), token: given.token }),
    status: 404,
    says: [NOT_FOUND],
    closed: 'byte-equal 404',
    reason,
  };
}

function network(what: string, wallet: (desk: Desk) => string, id: (desk: Desk) => string): Mistake {
  return {
    what: `network assignment: ${what}`,
    request: (given) => ({ to: `POST /v1/wallets/${wallet(given)}/networks/${id(given)}`, token: given.token }),
    status: 400,
    says: [],
  };
}

const ofDemo = ({ p }: Desk) => p.demo.wallet_id;

const paths: Mistake[] = [
  path('a slash at its end', () => 'GET /v1/accounts/', 'no endpoint has this path'),
  path('another case', () => 'GET /v1/Accounts', 'no endpoint has this path'),
  path('another version', () => 'GET /v2/accounts', 'no endpoint has this path'),
  path('another method', ({ p }) => `GET /v1/wallets/${p.demo.wallet_id}/rules`, 'the path has only POST'),
  path('GET for a token', () => 'GET /v2/oauth/token', 'the path has only POST'),
  path('an encoded slash', () => 'GET /v1%2Faccounts', 'the path can be read in two ways'),
  {
    ...network(
      'a wallet that is no UUID',
      () => 'w1',
      ({ p }) => p.demo.network_id,
    ),
    says: ['{"path":"wallet_id","message":"must be a UUID'],
  },
  {
    ...network('a network that is no UUID', ofDemo, () => 'ethereum'),
    says: ['{"path":"network_id","message":"must be a UUID'],
  },
  {
    ...network('a network of another chain', ofDemo, ({ p }) => p.demo.other_chain_network_id),
    says: ['network_id', 'chain'],
  },
  {
    ...network('an unknown network', ofDemo, () => randomUUID()),
    status: 404,
    says: [NOT_FOUND],
    closed: 'byte-equal 404',
  },
  {
    what: 'asset: an id that is no UUID',
    request: ({ token }) => ({ to: 'GET /v2/admin/tokens/HB30', token }),
    status: 400,
    says: ['{"path":"id","message":"must be a UUID'],
  },
];

function rule(what: string, body: object | string, ...says: string[]): Mistake {
  return {
    what: `rule: ${what}`,
    request: ({ p, token }) => ({
      to: `POST /v1/wallets/${p.demo.wallet_id}/rules`,
      token,
      headers: { 'content-type': 'application/json' },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    }),
    status: 400,
    says,
  };
}

function ruleOf(logic: object): object {
  return autoTransfer({}, { rule_logic: logic });
}

const rules: Mistake[] = [
  rule('no body', '', 'must be JSON, and is empty'),
  rule('a comma too many', '{\n  "name": "x",\n}', 'must be JSON, and is malformed at line 3 column 1'),
  rule('a value without quotes', '{"name": hot}', 'must be JSON, and is malformed at line 1 column 10'),
  rule('a list', '[]', 'must be an object'),
  rule('without a name', autoTransfer({ name: undefined }), '{"path":"name","message":"is required: a string"}'),
  rule(
    'networkId for network_id',
    autoTransfer({ network_id: undefined, networkId: randomUUID() }),
    '"path":"network_id","message":"is required: a UUID',
    "network_id is the member's name, not networkId",
  ),
  rule('without its object', autoTransfer({ auto_transfer_rule: null }), 'is required where type is auto_transfer'),
  rule(
    'autoTransferRule for its object',
    autoTransfer({ auto_transfer_rule: undefined, autoTransferRule: {} }),
    "auto_transfer_rule is the member's name, not autoTransferRule",
  ),
  rule('an unknown type', autoTransfer({ type: 'transfer' }), 'must be one of auto_transfer, permissionless_transfer'),
  rule('an amount as text', autoTransfer({}, { amount: '50' }), '"auto_transfer_rule.amount"', 'must be a number'),
  rule('an unknown operator', ruleOf(leaf({ op: 'below' })), 'rule_logic.op', 'must be one of lt, lte, gt, gte'),
  rule(
    'a condition without a value',
    ruleOf({ and: [leaf(), leaf({ value: undefined })] }),
    '"auto_transfer_rule.rule_logic.and[1].value"',
    'is required: a number',
  ),
  rule(
    'AND for and',
    ruleOf({ AND: [leaf()] }),
    '"auto_transfer_rule.rule_logic.and"',
    "is required: a group of conditions; and is the member's name, not AND",
  ),
  rule('a priority of 0', autoTransfer({ priority: 0 }), '"priority"', 'must be a whole number from 1 to 100'),
  {
    ...rule('over 1 MiB', autoTransfer({ name: 'x'.repeat(1024 * 1024) }), 'payload_too_large'),
    status: 413,
  },
];

function migration(what: string, json: unknown, ...says: string[]): Mistake {
  return {
    what: `migration: ${what}`,
    request: ({ token, user }) => ({
      to: 'POST /v2/users/migrate/with-wallet',
      token,
      json: typeof json === 'function' ? json(user) : json,
    }),
    status: 400,
    says,
  };
}

function bulk(what: string, json: unknown, ...says: string[]): Mistake {
  return {
    what: `bulk migration: ${what}`,
    request: ({ token }) => ({ to: 'POST /v2/users/migrate/with-wallet/bulk', token, json }),
    status: 400,
    says,
  };
}

const migrations: Mistake[] = [
  migration(
    'walletAddress for wallet_address',
    { email: 'a@b.example', walletAddress: '0x1' },
    '"path":"wallet_address","message":"is required: a string',
    "wallet_address is the member's name, not walletAddress",
  ),
  {
    ...migration(
      'externalId for external_id',
      { wallet_address: '0x1', externalId: 'x' },
      '{"code":-1,"domain":0,"message":"missing_email_and_external_id"}',
    ),
    closed: 'documented reason',
  },
  migration('an e-mail that is taken', ({ email }: Desk['user']) => newUser({ email }), 'duplicate_email'),
  migration('kyc_sent as text', { ...newUser(), kyc_sent: 'yes' }, '"kyc_sent"', 'must be a boolean'),
  {
    ...migration('over 1 MiB', { ...newUser(), name: 'x'.repeat(1024 * 1024) }, 'must be at most 1048576 bytes'),
  },
  bulk('a list for the object', [newUser()], 'must be an object'),
  bulk('user for users', { user: [newUser()] }, '{"path":"users","message":"is required: an array"}'),
  bulk('no row', { users: [] }, '"users"', 'must have at least one row'),
  bulk('501 rows', { users: Array.from({ length: 501 }, () => ({})) }, '"users"', 'must have at most 500 rows'),
  bulk(
    'a row without wallet_address',
    { users: [newUser(), { email: 'a@b.example' }] },
    '{"path":"users[1].wallet_address","message":"is required: a string"}',
  ),
  bulk(
    'a row with Wallet_Address',
    { users: [{ email: 'a@b.example', Wallet_Address: '0x1' }] },
    '"users[0].wallet_address"',
    "wallet_address is the member's name, not Wallet_Address",
  ),
];

const AT = '2026-11-21T10:30:00Z';

function notification(what: string, changes: object, ...says: string[]): Mistake {
  return {
    what: `webhook: ${what}`,
    request: ({ p }) => ({
      to: 'POST /v2/webhooks/custodial',
      headers: { authorization: basicOf({ client_id: p.webhook.username, client_secret: p.webhook.password }) },
      json: { id: 'x', type: 1, status: 1, created_at: AT, updated_at: AT, ...changes },
    }),
    status: 400,
    says,
  };
}

const notifications: Mistake[] = [
  {
    ...notification('a Bearer token', {}, 'Basic realm="portcullis", charset="UTF-8"'),
    request: ({ token }) => ({ to: 'POST /v2/webhooks/custodial', token, json: {} }),
    status: 401,
  },
  {
    ...notification('wrong credentials', {}, 'Basic realm="portcullis", charset="UTF-8"'),
    request: ({ p }) => ({ to: 'POST /v2/webhooks', headers: { authorization: basicOf(p.demo.client) }, json: {} }),
    status: 401,
    closed: 'no guessing',
  },
  notification('without a type', { type: undefined }, '"type"', 'is required: an integer from -2147483648'),
  notification(
    'createdAt for created_at',
    { created_at: undefined, createdAt: AT },
    'is required: an ISO 8601 date and time',
    "created_at is the member's name, not createdAt",
  ),
  notification('a status of 9', { status: 9 }, '"status"', 'must be 1 (Started), 2 (InProgress), 3 (Done)'),
  notification(
    'seconds for a time',
    { updated_at: 1_795_257_000 },
    '"updated_at"',
    'must be an ISO 8601 date and time',
  ),
  notification('over 256 KiB', { note: 'x'.repeat(256 * 1024) }, 'must be at most 262144 bytes'),
];

function page(what: string, query: string, ...says: string[]): Mistake {
  return {
    what: `accounts: ${what}`,
    request: ({ token }) => ({ to: `${ACCOUNTS}?${query}`, token }),
    status: 400,
    says,
  };
}

const pages: Mistake[] = [
  page('page=0', 'page=0', '"page"', 'must be a whole number from 1 to'),
  page('limit=1000', 'limit=1000', '"limit"', 'must be a whole number from 1 to 100'),
  page('limit twice', 'limit=5&limit=6', '"limit"', 'must be given once'),
  page('page=two', 'page=two', '"page"', 'must be a whole number from 1 to'),
  { ...page('perPage for limit', 'perPage=5', '"per_page":10'), status: 200, closed: 'ignored' },
];

function graphql(what: string, json: unknown, ...says: string[]): Mistake {
  return {
    what: `GraphQL: ${what}`,
    request: ({ token }) =>
      typeof json === 'string'
        ? { to: 'POST /graphql', token, headers: { 'content-type': 'application/json' }, body: json }
        : { to: 'POST /graphql', token, json },
    status: 200,
    says,
  };
}

const CREATE_RULE = `mutation ($logic: JSON!) {
  createWalletRule(walletId: "00000000-0000-4000-8000-000000000000", input: {
    name: "x", type: "auto_transfer",
    networkId: "00000000-0000-4000-8000-000000000000", networkCurrencyId: "00000000-0000-4000-8000-000000000000",
    autoTransferRule: { type: "auto", ruleLogic: $logic, amount: 1, targetWalletId: "00000000-0000-4000-8000-000000000000" }
  }) { __typename ... on ValidationError { issues { path message } } }
}`;

const RULE_OF = 'mutation ($input: WalletRuleInput!) { createWalletRule(walletId: "x", input: $input) { __typename } }';

const operations: Mistake[] = [
  {
    ...graphql('no token', {}, 'Bearer\n', '"unauthorized"'),
    request: () => ({ to: 'POST /graphql', json: { query: '{ me { nodeId } }' } }),
    status: 401,
  },
  {
    ...graphql('an expired token', {}, 'error_description="the token has expired"'),
    request: ({ p }) => ({
      to: 'POST /graphql',
      token: signed(p, apiClaims(p, { exp: 1 })),
      json: { query: '{ me { nodeId } }' },
    }),
    status: 401,
  },
  { ...graphql('no query', { variables: {} }, 'query is required'), status: 400 },
  {
    ...graphql(
      'operation_name',
      { query: '{ me { nodeId } }', operation_name: 'x' },
      "operationName is the member's name",
    ),
    status: 400,
  },
  {
    ...graphql('without a member', { query: RULE_OF, variables: { input: { name: 'x' } } }, '\\"type\\" is required'),
    status: 400,
  },
  { ...graphql('no body', '', 'the body must be JSON, and is empty'), status: 400 },
  {
    ...graphql('malformed', '{"query": {me}', 'the body must be JSON, and is malformed at line 1 column 12'),
    status: 400,
  },
  { ...graphql('over 1 MiB', { query: ' '.repeat(1024 * 1024) }, 'payload_too_large'), status: 413 },
  { ...graphql('an unknown field', { query: '{ me { node_id } }' }, 'Did you mean \\"nodeId\\"'), status: 400 },
  {
    ...graphql(
      'without a variable',
      { query: 'query ($id: ID!) { account(id: $id) { id } }' },
      'Variable \\"$id\\"',
      'a value of type \\"ID!\\" is required',
    ),
    status: 400,
  },
  {
    ...graphql('a page of 1000', { query: '{ accounts(first: 1000) { totalCount } }' }, '0 to 100 are allowed'),
    status: 400,
  },
  graphql(
    'a condition without op',
    { query: CREATE_RULE, variables: { logic: { and: [leaf({ op: undefined })] } } },
    '"path":["autoTransferRule","ruleLogic","and","0","op"],"message":"is required: a string"',
  ),
  graphql(
    'networkCurrencyId in a condition',
    { query: CREATE_RULE, variables: { logic: leaf({ network_currency_id: undefined, networkCurrencyId: AT }) } },
    "network_currency_id is the member's name, not networkCurrencyId",
  ),
  {
    ...graphql('without the permission', {}, '"FORBIDDEN"', '"permission":"accounts:read"'),
    request: ({ weakToken }) => ({
      to: 'POST /graphql',
      token: weakToken,
      json: { query: '{ accounts { totalCount } }' },
    }),
  },
];

const ACCEPT = { accept: 'application/json, text/event-stream' };

function message(what: string, json: unknown, ...says: string[]): Mistake {
  return {
    what: `MCP: ${what}`,
    request: ({ p }) => ({
      to: 'POST /v2/mcp',
      token: p.demo.client.client_secret,
      ...(typeof json === 'string'
        ? { headers: { ...ACCEPT, 'content-type': 'application/json' }, body: json }
        : { headers: ACCEPT, json }),
    }),
    status: 200,
    says,
  };
}

function call(what: string, name: string, args: object, ...says: string[]): Mistake {
  return message(what, { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }, ...says);
}

const messages: Mistake[] = [
  {
    ...message('an access token for the secret', {}, NOT_VALID),
    request: ({ token }) => ({ to: 'POST /v2/mcp', token, headers: ACCEPT, json: {} }),
    status: 401,
    closed: 'no guessing',
  },
  { ...message('no body', '', 'must be JSON, and is empty'), status: 400 },
  { ...message('malformed', '{"jsonrpc": 2.0.0}', 'must be JSON, and is malformed at line 1 column 16'), status: 400 },
  { ...message('a batch', [], 'must be one message'), status: 400 },
  { ...message('over 1 MiB', { x: 'x'.repeat(1024 * 1024) }, 'payload_too_large'), status: 413 },
  {
    ...message('GET', {}, 'POST\n', 'method_not_allowed'),
    request: ({ p }) => ({ to: 'GET /v2/mcp', token: p.demo.client.client_secret, headers: ACCEPT }),
    status: 405,
  },
  {
    ...message('a session', {}, NOT_FOUND),
    request: ({ p }) => ({
      to: 'POST /v2/mcp',
      token: p.demo.client.client_secret,
      headers: { ...ACCEPT, 'mcp-session-id': 'x' },
      json: {},
    }),
    status: 404,
    closed: 'byte-equal 404',
    reason: 'there are no sessions',
  },
  {
    ...message(
      'Method for method',
      { jsonrpc: '2.0', id: 1, Method: 'ping' },
      "method is the member's name, not Method",
    ),
    status: 400,
  },
  message(
    'a call without a name',
    { jsonrpc: '2.0', id: 1, method: 'tools/call', params: {} },
    'params.name: is required: string',
  ),
  call('an unknown tool', 'accounts', {}, 'there is no tool accounts: tools/list has them all'),
  call('without an argument', 'get_account', {}, 'account_id: is required: a UUID'),
  call(
    'accountId for account_id',
    'get_account',
    { accountId: 'x' },
    "account_id is the member's name, not accountId",
    "accountId: is no argument of get_account: account_id is the member's name",
  ),
  call(
    'includeTotal for include_total',
    'list_accounts',
    { includeTotal: true },
    "includeTotal: is no argument of list_accounts: include_total is the member's name",
  ),
  {
    ...call('without the scope', 'list_accounts', {}, 'the client lacks the scope accounts:read'),
    request: ({ weak }) => ({
      to: 'POST /v2/mcp',
      token: weak.client_secret,
      headers: ACCEPT,
      json: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'list_accounts', arguments: {} } },
    }),
  },
];

/** What integrators do wrong, each with the answer that they get. */
export const MISTAKES: readonly Mistake[] = [
  tokenCalls,
  headers,
  paths,
  rules,
  migrations,
  notifications,
  pages,
  operations,
  messages,
].flat();

import { setTimeout as sleep } from 'node:timers/promises';
import type { Options, Recorder } from './recorder.ts';
import { CONSOLE, DEMO, forged, JWT_SECRETS, NOBODY, spoilt } from './values.ts';

/** Who calls. */
export interface Callers {
  /** The demo client, the demo supervisor, a client without scopes, the other node's client. */
  token: string;
  login: string;
  poor: string;
  neighbour: string;
  /** Secrets of the client without scopes and of one with limits, for MCP. */
  poorSecret: string;
  limited: { client_id: string; client_secret: string };
}

const { wallet_id: WALLET, network_id: NETWORK, network_currency_id: CURRENCY } = DEMO;
export const RULES = `/v1/wallets/${WALLET}/rules`;
const MIGRATE = '/v2/users/migrate/with-wallet';
/** No body is sent: the answer comes without one. */
const DECLARED_TOO_LONG = 3_000_000;
export const JSON_TYPE = { 'content-type': 'application/json' };
export const LONG_ID = { 'x-correlation-id': 'x'.repeat(1025) };

export const LOGIC = { field: 'balance.available', op: 'lt', value: 100.5, network_currency_id: CURRENCY };
export const TRANSFER_RULE = {
  name: 'Top up',
  type: 'auto_transfer',
  network_id: NETWORK,
  network_currency_id: CURRENCY,
  priority: 5,
  auto_transfer_rule: { type: 'auto', rule_logic: LOGIC, amount: 50, target_wallet_id: DEMO.target_wallet_id },
  sign_and_approve_rule: { mandatory_user_id: DEMO.user_id, min_priority: 1, max_priority: 9, min_user_count: 2 },
};
export const LIMIT_RULE = {
  name: 'Limit',
  type: 'permissionless_transfer_limit',
  network_id: NETWORK,
  network_currency_id: CURRENCY,
  permissionless_transfer_limit_rule: { max_amount: 5, time_period: 'day', time_period_value: 1 },
};
const USER = {
  wallet_address: ' 0xABC ',
  email: 'Bob@example.com',
  external_id: 'e-1',
  name: 'Bob',
  surname: 'B',
  kyc_sent: false,
};

const PROTECTED: readonly [method: string, path: string, body?: object][] = [
  ['POST', RULES, LIMIT_RULE],
  ['PUT', `${RULES}/${NOBODY}`, LIMIT_RULE],
  ['POST', `/v1/wallets/${WALLET}/networks/${DEMO.second_network_id}`],
  ['POST', MIGRATE, USER],
  ['POST', `${MIGRATE}/bulk`, { users: [USER] }],
  ['GET', '/v1/accounts'],
  ['GET', `/v2/admin/tokens/${DEMO.asset_id}`],
];
const PUBLIC = [
  '/health',
  '/v1/health',
  '/v2/health',
  '/v2/blockchain/gas-fee',
  '/.well-known/oauth-authorization-server',
  '/swagger/',
];

/** Every kind of token that is none, and of token that is good. */
function tokens(): [what: string, headers: Record<string, string | string[]>][] {
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
  const now = Math.floor(Date.now() / 1000);
  const good = forged();
  const claims: Record<string, Record<string, unknown>> = {
    good: {},
    'without exp': { exp: undefined },
    expired: { exp: now - 1 },
    'not valid yet': { nbf: now + 300 },
    refresh: { token_use: 'refresh' },
    forgot_password: { token_use: 'forgot_password' },
    'of another use': { token_use: 'admin' },
    'without use': { token_use: undefined },
    'without sub': { sub: undefined },
    'without aud': { aud: undefined },
    'of an unknown node': { aud: NOBODY },
    'of the other node': { aud: DEMO.other_node.node_id },
    'of two nodes': { aud: [DEMO.node_id, DEMO.other_node.node_id] },
    'of an unknown client': { client_id: NOBODY },
    'without scope': { scope: undefined },
    'of a login without a session': { token_use: 'login' },
    'of a login of no session': { token_use: 'login', sid: NOBODY },
    'with a jti that is none': { jti: 7 },
  };
  return [
    ['none', {}],
    ['empty', { authorization: '' }],
    ['no bearer', { authorization: 'Basic eDp4' }],
    ['no jwt', bearer('x')],
    ['two', { authorization: [`Bearer ${good}`, 'Bearer x'] }],
    ['lower case scheme', { authorization: `bearer ${good}` }],
    ['cut short', bearer(good.slice(0, -1))],
    ['alg none', bearer(`${Buffer.from('{"alg":"none"}').toString('base64url')}.${good.split('.')[1]}.`)],
    ['kid of another class', bearer(forged({}, JWT_SECRETS.user, { kid: 'discover.0000000000000000' }))],
    ['wrong secret', bearer(forged({}, 'x'.repeat(40)))],
    ['secret before', bearer(forged({}, JWT_SECRETS.userBefore))],
    ['legacy', bearer(forged({ token_use: undefined, jti: undefined, client_id: undefined }, JWT_SECRETS.legacy))],
    ['discover', bearer(forged({ token_use: undefined, jti: undefined, client_id: undefined }, JWT_SECRETS.discover))],
    ...Object.entries(claims).map(([what, changes]): [string, Record<string, string>] => [
      what,
      bearer(forged(changes)),
    ]),
  ];
}

export async function restCases(r: Recorder, { token, login, poor, neighbour }: Callers): Promise<void> {
  for (const [what, headers] of tokens()) await r.call(`token ${what}`, 'GET', '/v1/accounts?limit=1', { headers });
  for (const [method, path, json] of PROTECTED) {
    const name = `${method} ${path.replaceAll(/0{8}-\S{4}-4000-8000-0*/g, '')}`;
    for (const [what, options] of Object.entries<Options>({
      'no token': {},
      'broken token': { token: 'x' },
      'without permission': { token: poor },
      'for an unknown service': { token, headers: { 'x-target-server': 'x' } },
      'discover token': { token: forged({}, JWT_SECRETS.discover) },
      'with a long correlation id': { token, headers: LONG_ID },
    })) {
      await r.call(`${name} ${what}`, method, path, { ...options, ...(json && { json }) });
    }
    for (const other of ['PATCH', 'DELETE', 'HEAD', 'OPTIONS'])
      await r.call(`${name} as ${other}`, other, path, { token });
    if (!json) continue;
    for (const [what, options] of Object.entries<Options>({
      'no JSON': { body: '{', headers: JSON_TYPE },
      'no UTF-8': { body: Buffer.from('{"name":"\xff"}', 'latin1'), headers: JSON_TYPE },
      'no content type': { body: '{}' },
      'another content type': { body: '{}', headers: { 'content-type': 'text/plain' } },
      'no body': { headers: JSON_TYPE },
      null: { json: null },
      'a list': { json: [] },
      'a text': { json: 'x' },
      'too deep': { body: `${'['.repeat(20_001)}${']'.repeat(20_001)}`, headers: JSON_TYPE },
      'a key twice': { json, headers: { 'idempotency-key': ['a', 'b'] } },
      'an empty key': { json, headers: { 'idempotency-key': '' } },
      'a long key': { json, headers: { 'idempotency-key': 'x'.repeat(256) } },
    })) {
      await r.call(`${name} with ${what}`, method, path, { token, ...options });
    }
    const head = `${method} ${path} HTTP/1.1\r\nHost: gate.example\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json`;
    await r.raw(
      `${name} declared too long`,
      `${head}\r\nConnection: close\r\nContent-Length: ${DECLARED_TOO_LONG}\r\n\r\n`,
    );
  }
  await rules(r, token, neighbour);
  await migrations(r, token, neighbour);
  await lists(r, token, login, neighbour);
  await publicRoutes(r);
}

async function rules(r: Recorder, token: string, neighbour: string): Promise<void> {
  for (const [kind, good] of Object.entries({ transfer: TRANSFER_RULE, limit: LIMIT_RULE })) {
    await r.call(`rule ${kind}`, 'POST', RULES, { token, json: good });
    for (const [what, json] of spoilt(good)) await r.call(`rule ${kind} ${what}`, 'POST', RULES, { token, json });
  }
  const logics: Record<string, unknown> = {
    and: { and: [LOGIC, { not: LOGIC }] },
    'empty group': { or: [] },
    'two groups': { and: [LOGIC], or: [LOGIC] },
    '9 deep': Array.from({ length: 8 }).reduce<object>((inner) => ({ not: inner }), LOGIC),
    '65 conditions': { and: Array.from({ length: 65 }, () => LOGIC) },
    ...Object.fromEntries(
      ['lte', 'gt', 'gte', 'eq', 'neq', '<', '<=', '>', '>=', '=', '==', '!=', 'LT', 'like'].map((op) => [
        `op ${op}`,
        { ...LOGIC, op },
      ]),
    ),
  };
  for (const [what, rule_logic] of Object.entries(logics)) {
    const json = { ...TRANSFER_RULE, auto_transfer_rule: { ...TRANSFER_RULE.auto_transfer_rule, rule_logic } };
    await r.call(`rule logic ${what}`, 'POST', RULES, { token, json });
  }
  for (const number of ['0.123456789012345678901234567890', '1e78', '1e-79', '12345678901234567890123', '-0', '1E2']) {
    const body = JSON.stringify(TRANSFER_RULE).replace('"amount":50', `"amount":${number}`);
    await r.call(`rule amount ${number}`, 'POST', RULES, { token, body, headers: JSON_TYPE });
  }
  const key = { 'idempotency-key': 'rule-1' };
  for (const [what, json] of [
    ['first', LIMIT_RULE],
    ['again', LIMIT_RULE],
    ['of another body', TRANSFER_RULE],
    ['of a bad body', {}],
  ] as const) {
    await r.call(`rule under a key ${what}`, 'POST', RULES, { token, json, headers: key });
  }
  const bad = { token, json: {}, headers: { 'idempotency-key': 'rule-2' } };
  for (const what of ['', ' again']) await r.call(`rule under a bad body key${what}`, 'POST', RULES, bad);
  for (const [what, wallet] of [
    ['of nobody', NOBODY],
    ['that is no id', 'x'],
    ['of the other node', DEMO.other_node.wallet_id],
  ] as const) {
    await r.call(`rule in a wallet ${what}`, 'POST', `/v1/wallets/${wallet}/rules`, { token, json: LIMIT_RULE });
    for (const network of [NETWORK, 'x', NOBODY]) {
      const name = `network ${network.slice(-2)} of a wallet ${what}`;
      await r.call(name, 'POST', `/v1/wallets/${wallet}/networks/${network}`, { token });
    }
  }
  const made = await r.call('rule to replace', 'POST', RULES, { token, json: TRANSFER_RULE });
  const location = made.headers.find(([name]) => name === 'Location')?.[1] ?? '';
  const path = location.replace(/^https?:\/\/[^/]+/, '');
  const replace = (what: string, to = path, options: Options = {}) =>
    r.call(what, 'PUT', to, { token, json: LIMIT_RULE, ...options });
  await replace('replace');
  await replace('replace as another node', path, { token: neighbour });
  await replace('replace in another wallet', path.replace(WALLET, DEMO.target_wallet_id));
  const capitals = path.replace(/[^/]+$/, (id) => id.toUpperCase());
  await replace('replace in capitals', capitals);
  for (const match of ['*', '"3"', '"999"', 'W/"4"', '1', '', '"1", "4"', '"4'])
    await replace(`replace if-match ${match}`, path, { headers: { 'if-match': match } });
  await replace('replace if-match twice', path, { headers: { 'if-match': ['"1"', '"5"'] } });
  for (const [what, json] of spoilt({ name: 'Limit', type: LIMIT_RULE.type }))
    await replace(`replace ${what}`, path, { json });
  for (const id of [NOBODY, 'x']) await replace(`replace the rule ${id}`, `${RULES}/${id}`);
  for (const [what, network] of Object.entries({
    one: DEMO.second_network_id,
    again: DEMO.second_network_id,
    'other chain': DEMO.other_chain_network_id,
    none: NOBODY,
    'no id': 'x',
  })) {
    await r.call(`network ${what}`, 'POST', `/v1/wallets/${WALLET}/networks/${network}`, { token });
  }
}

async function migrations(r: Recorder, token: string, neighbour: string): Promise<void> {
  await r.call('user', 'POST', MIGRATE, { token, json: USER });
  await r.call('user again', 'POST', MIGRATE, { token, json: USER });
  await r.call('user of the other node', 'POST', MIGRATE, { token: neighbour, json: USER });
  let count = 1;
  for (const [what, json] of spoilt(USER)) {
    count += 1;
    const own = { wallet_address: `0x${count}`, email: `${count}@example.com`, external_id: `e-${count}` };
    const kept = Object.fromEntries(
      Object.entries(json).map(([name, value]) => [
        name,
        value === USER[name as keyof typeof USER] && name in own ? own[name as keyof typeof own] : value,
      ]),
    );
    await r.call(`user ${what}`, 'POST', MIGRATE, { token, json: kept });
  }
  for (const [what, json] of Object.entries({
    'duplicate email': { wallet_address: '0xnew1', email: 'bOB@example.com' },
    'duplicate external id': { wallet_address: '0xnew2', external_id: 'e-1' },
    'duplicate wallet': { wallet_address: '0xABC', external_id: 'new' },
    'no identifier': { wallet_address: '0xnew3' },
    verified: { wallet_address: '0xnew4', external_id: 'verified', kyc_sent: true },
    'long wallet': { wallet_address: 'x'.repeat(129), external_id: 'long' },
    'long email': { wallet_address: '0xnew5', email: 'x'.repeat(3000) },
  })) {
    await r.call(`user ${what}`, 'POST', MIGRATE, { token, json });
  }
  const rows = [...spoilt(USER)].map(([, row], index) => ({
    ...row,
    ...('wallet_address' in row && row.wallet_address === USER.wallet_address && { wallet_address: `0xrow${index}` }),
  }));
  for (const [what, users] of Object.entries({
    spoilt: rows,
    none: [],
    'no list': 'x',
    'no rows': [1, null],
    many: Array.from({ length: 501 }, (_, index) => ({ wallet_address: `0xmany${index}` })),
    good: ['a', 'b'].map((id) => ({ wallet_address: `0xgood${id}`, external_id: `good-${id}` })),
  })) {
    await r.call(`users ${what}`, 'POST', `${MIGRATE}/bulk`, { token, json: { users } });
  }
  for (const [path, json, other] of [
    [
      MIGRATE,
      { wallet_address: '0xkeyed', external_id: 'keyed' },
      { wallet_address: '0xkeyed2', external_id: 'keyed2' },
    ],
    [
      `${MIGRATE}/bulk`,
      { users: [{ wallet_address: '0xkeyed3', external_id: 'keyed3' }] },
      { users: [{ wallet_address: '0xkeyed4' }] },
    ],
  ] as const) {
    for (const [what, body] of [
      ['first', json],
      ['again', json],
      ['of another body', other],
    ] as const) {
      await r.call(`${path} under a key ${what}`, 'POST', path, {
        token,
        json: body,
        headers: { 'idempotency-key': 'users-1' },
      });
    }
  }
}

async function lists(r: Recorder, token: string, login: string, neighbour: string): Promise<void> {
  const queries = [
    '',
    '?limit=3',
    '?page=2&limit=10',
    '?page=99',
    '?limit=100',
    '?limit=101',
    '?limit=0',
    '?limit=-1',
    '?limit=x',
    '?limit=1.5',
    '?limit=',
    '?page=0',
    '?page=x',
    '?page=99999999999999999999',
    '?limit=1&limit=2',
    '?include_deleted=true',
    '?include_deleted=false',
    '?include_deleted=1',
    '?include_deleted=',
    '?unknown=1',
    '?token=abc&password=secret',
  ];
  for (const query of queries) await r.call(`accounts ${query}`, 'GET', `/v1/accounts${query}`, { token });
  await r.call('accounts of a login', 'GET', '/v1/accounts?limit=2', { token: login });
  await r.call('accounts of the other node', 'GET', '/v1/accounts', { token: neighbour });
  for (const id of [DEMO.asset_id, DEMO.asset_id.toUpperCase(), NOBODY, 'x', '%00', DEMO.account_id]) {
    await r.call(`asset ${id}`, 'GET', `/v2/admin/tokens/${id}`, { token });
  }
  await r.call('asset of another node', 'GET', `/v2/admin/tokens/${DEMO.asset_id}`, { token: neighbour });
}

async function publicRoutes(r: Recorder): Promise<void> {
  // It is told, and so are lengths: it has two digits for the rest of a recording.
  while ((await r.unrecorded('GET', '/health')).json.uptime < 10) await sleep(100);
  for (const path of PUBLIC) {
    for (const method of ['GET', 'HEAD', 'POST', 'OPTIONS']) await r.call(`${method} ${path}`, method, path);
    await r.call(`${path} for no service`, 'GET', path, { headers: { 'x-target-server': 'x' } });
    await r.call(`${path} HEAD for no service`, 'HEAD', path, { headers: { 'x-target-server': 'x' } });
    await r.call(`${path} with a broken token`, 'GET', path, { token: 'x' });
    await r.call(`${path} with a long correlation id`, 'GET', path, { headers: LONG_ID });
    await r.call(`${path} HEAD with a long correlation id`, 'HEAD', path, { headers: LONG_ID });
  }
  for (const file of [
    'initializer.js',
    'openapi.json',
    'swagger-ui.css',
    'swagger-ui-bundle.js',
    'favicon-32x32.png',
    'x',
    'a/b',
    '..%2f',
  ]) {
    const { headers } = await r.call(`swagger ${file}`, 'GET', `/swagger/${file}`);
    const etag = headers.find(([name]) => name === 'ETag')?.[1];
    if (etag) await r.call(`swagger ${file} again`, 'GET', `/swagger/${file}`, { headers: { 'if-none-match': etag } });
  }
  for (const service of ['integration', 'accounts', 'wallets', 'wallet-rules', 'notification', 'x', '']) {
    await r.call(`health for ${service}`, 'GET', '/health', { headers: { 'x-target-server': service } });
  }
  for (const path of [
    '/',
    '/v1',
    '/v1/accounts/',
    '/V1/accounts',
    '//v1/accounts',
    '/v1/./accounts',
    '/v1/../v1/accounts',
    '/v1/..;x/accounts',
    '/v1/accounts%2f',
    '/v1\\accounts',
    '/v1/accounts%00',
    '/metrics',
    '/livez',
    '/v1/discovers',
    '/v3/health',
    '/%zz',
    `/${'x'.repeat(9000)}`,
  ]) {
    await r.call(`path ${path.slice(0, 40)}`, 'GET', path);
  }
  const discoverToken = () => forged({}, JWT_SECRETS.discover);
  for (const method of ['GET', 'POST', 'DELETE']) {
    const headers = { 'x-custom': 'a', 'x-forwarded-for': '198.51.100.7' };
    await r.call(`discovers ${method}`, method, '/v1/discovers/things?a=1', { token: discoverToken(), headers });
    await r.call(`discovers ${method} with another token`, method, '/v1/discovers/things', {
      token: forged(),
      headers,
    });
  }
  for (const status of ['201', '404', '500', '304']) {
    const headers = { 'x-answer-status': status };
    await r.call(`discovers ${status}`, 'GET', '/v1/discovers/x', { token: discoverToken(), headers });
  }
  await r.call('discovers without a token', 'GET', '/v1/discovers/x');
}

/** What is of the wire, whatever is asked for. */
export async function wireCases(r: Recorder, { token }: Callers): Promise<void> {
  const preflight = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'authorization' };
  for (const origin of [CONSOLE, 'https://other.example', 'null', '']) {
    await r.call(`cors ${origin}`, 'GET', '/v1/accounts?limit=1', { token, headers: { origin } });
    await r.call(`cors refused ${origin}`, 'GET', '/v1/accounts', { headers: { origin } });
    for (const path of ['/v1/accounts', '/graphql', '/nowhere', '/v2/mcp', '/v2/oauth/token', '*']) {
      await r.call(`preflight ${path} ${origin}`, 'OPTIONS', path, { headers: { origin, ...preflight } });
    }
  }
  const headers: Record<string, Record<string, string | string[]>> = {
    'a correlation id': { 'x-correlation-id': 'my-id' },
    'an empty correlation id': { 'x-correlation-id': '' },
    'two correlation ids': { 'x-correlation-id': ['a', 'b'] },
    'a token as correlation id': { 'x-correlation-id': forged({ iat: 1, exp: 2 }) },
    'a forwarded address': { 'x-forwarded-for': '203.0.113.9, 198.51.100.7' },
    'a forwarded address with a port': { 'x-forwarded-for': '[2001:db8::1]:443' },
    'no forwarded address': { 'x-forwarded-for': 'x' },
    'a real address': { 'x-real-ip': '203.0.113.8' },
    'a referer with a token': { referer: 'https://x.example/?access_token=abc&a=1' },
    'a cookie': { cookie: 'session=abc', 'x-api-key': 'k' },
    'two target servers': { 'x-target-server': ['accounts', 'wallets'] },
    'a traceparent': { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' },
    'a large head': { 'x-large': 'x'.repeat(20_000) },
  };
  for (const [what, given] of Object.entries(headers)) {
    await r.call(`head with ${what}`, 'GET', '/v1/accounts?limit=1', { token, headers: given });
  }
  const host = 'Host: gate.example\r\nConnection: close\r\n';
  const messages: Record<string, string> = {
    'no HTTP': 'hello\r\n\r\n',
    'no host': 'GET /health HTTP/1.1\r\nConnection: close\r\n\r\n',
    'HTTP/1.0': `GET /health HTTP/1.0\r\n${host}\r\n`,
    'two lengths': `POST /v2/webhooks HTTP/1.1\r\n${host}Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}`,
    'length and chunks': `POST /v2/webhooks HTTP/1.1\r\n${host}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    'a bad chunk': `POST /v2/oauth/token HTTP/1.1\r\n${host}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n`,
    'a bad header': `GET /health HTTP/1.1\r\n${host}x y: z\r\n\r\n`,
    'an unknown method': `BREW /health HTTP/1.1\r\n${host}\r\n`,
    CONNECT: `CONNECT gate.example:443 HTTP/1.1\r\n${host}\r\n`,
    TRACE: `TRACE /health HTTP/1.1\r\n${host}\r\n`,
    'an absolute target': `GET http://gate.example/health HTTP/1.1\r\n${host}\r\n`,
    'an upgrade elsewhere': `GET /health HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
    'an upgrade without a key': `GET /graphql HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n`,
    'an expectation': `POST /v2/webhooks HTTP/1.1\r\n${host}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}`,
    'another expectation': `GET /health HTTP/1.1\r\n${host}Expect: x\r\n\r\n`,
    'a head that is too large': `GET /health HTTP/1.1\r\n${host}x: ${'x'.repeat(70_000)}\r\n\r\n`,
    'two pipelined': `GET /health HTTP/1.1\r\nHost: x\r\n\r\nGET /v1/health HTTP/1.1\r\n${host}\r\n`,
  };
  for (const [what, bytes] of Object.entries(messages)) await r.raw(`wire ${what}`, bytes);
}

import { randomUUID } from 'node:crypto';
import { ASSET, type BadRow, BULK, GRAPHQL, NETWORK, RULE, RULES, type Sent, SINGLE } from './bad-request.ts';

const ACCOUNTS = 'GET /v1/accounts';
const PROTECTED = [RULES, RULE, NETWORK, SINGLE, BULK, ACCOUNTS, ASSET, GRAPHQL, 'GET /graphql'];
const WEBHOOKS = ['POST /v2/webhooks/custodial', 'POST /v2/webhooks'];
const PUBLIC = [
  ...['GET /health', 'HEAD /health', 'GET /v1/health', 'HEAD /v1/health', 'GET /v2/health', 'HEAD /v2/health'],
  ...[
    'GET /.well-known/oauth-authorization-server',
    'GET /console',
    'GET /console/**',
    'GET /swagger',
    'GET /swagger/*',
    'GET /v2/blockchain/gas-fee',
    'OPTIONS **',
  ],
];
const AGENTS = ['GET /v2/mcp', 'POST /v2/mcp', 'DELETE /v2/mcp', 'GET /v2/mcp/**', 'POST /v2/mcp/**'];
const EVERY = [
  ...PROTECTED,
  ...WEBHOOKS,
  ...PUBLIC,
  ...AGENTS,
  'POST /v2/oauth/token',
  'POST /v2/oauth/revoke',
  'POST /v2/oauth/introspect',
];

type Headers = Sent['headers'];

function withHeaders(route: string, name: string, headers: Headers, status: BadRow['status'], at?: string): BadRow {
  return { route, name, change: (good) => ({ headers: { ...good.headers, ...headers } }), status, at };
}

const everywhere: BadRow[] = EVERY.flatMap((route) => [
  withHeaders(
    route,
    'a correlation id of 1,025 bytes',
    { 'x-correlation-id': 'x'.repeat(1025) },
    400,
    'X-Correlation-ID',
  ),
  withHeaders(route, 'correlation ids of any bytes, twice', { 'x-correlation-id': ['\u00ff{}', '"; drop'] }, 'good'),
  withHeaders(route, 'an unknown target', { 'x-target-server': '__proto__' }, 404),
  withHeaders(route, 'two targets', { 'x-target-server': ['integration', 'wallets'] }, 400, 'X-Target-Server'),
  withHeaders(route, 'no host', { host: undefined }, 400, 'Host'),
  withHeaders(route, 'a host whose port is none', { host: 'a:65536' }, 400, 'Host'),
  withHeaders(route, 'a host that is half an address', { host: '1.2.3.999' }, 400, 'Host'),
  withHeaders(route, 'an expectation nobody knows', { expect: 'wonders' }, 'good'),
]);

/** Spellings of a bearer, and whether they are one (RFC 6750 section 2.1, RFC 9110 section 11.1). */
const BEARERS: [name: string, spelling: (bearer: string) => string | undefined, status: 401 | 'good'][] = [
  ['no Authorization', () => undefined, 401],
  ['an empty Authorization', () => '', 401],
  ['a scheme alone', () => 'Bearer', 401],
  ['a token alone', (bearer) => bearer.slice(7), 401],
  ['another scheme', (bearer) => bearer.replace('Bearer', 'Basic'), 401],
  ['a scheme without a space', (bearer) => bearer.replace(' ', ''), 401],
  ['two tokens', (bearer) => `${bearer}, ${bearer}`, 401],
  ['a token in quotes', (bearer) => bearer.replace(/ (.+)/, ' "$1"'), 401],
  ['a token that is cut', (bearer) => bearer.slice(0, -3), 401],
  ['a token with padding', (bearer) => `${bearer}=`, 401],
  ['a token without a signature', (bearer) => bearer.replace(/[^.]+$/, ''), 401],
  ['a token of 100,000 characters', () => `Bearer ${'a'.repeat(100_000)}`, 401],
  ['a token of dots', () => 'Bearer ..', 401],
  ['a scheme in lower case', (bearer) => bearer.replace('Bearer', 'bearer'), 'good'],
  ['a scheme in upper case and two spaces', (bearer) => bearer.replace('Bearer ', 'BEARER  '), 'good'],
];

const bearers: BadRow[] = PROTECTED.flatMap((route) =>
  BEARERS.map(([name, spelling, status]) => ({
    route,
    name,
    status,
    change: ({ headers }) => ({ headers: { ...headers, authorization: spelling(String(headers.authorization)) } }),
  })),
);

const basics: BadRow[] = WEBHOOKS.flatMap((route) => [
  withHeaders(route, 'no Authorization', { authorization: undefined }, 401),
  withHeaders(route, 'Basic without credentials', { authorization: 'Basic' }, 401),
  withHeaders(route, 'Basic of a null byte', { authorization: 'Basic AAAA' }, 401),
  withHeaders(route, 'Basic that is no Base64', { authorization: 'Basic \u00e9\u00e9:' }, 401),
]);

const agents: BadRow[] = AGENTS.flatMap((route) => [
  withHeaders(route, 'no secret', { authorization: undefined }, 401),
  withHeaders(route, 'an unknown secret', { authorization: 'Bearer nobody' }, 401),
]);

const publicly: BadRow[] = PUBLIC.flatMap((route) => [
  withHeaders(route, 'a broken bearer', { authorization: 'Bearer broken' }, 'good'),
  withHeaders(route, 'a type and an encoding of nothing', { 'content-type': 'x', 'content-encoding': 'gzip' }, 'good'),
  {
    route,
    name: 'a query of broken escapes',
    change: ({ target }) => ({ target: `${target}?%&=%ff&a[b]=%00&a=1&a=2` }),
    status: 'good',
  },
  { route, name: 'a path with a null byte', change: ({ target }) => ({ target: `${target}%00` }), status: 404 },
  { route, name: 'a path with a broken escape', change: ({ target }) => ({ target: `${target}%zz` }), status: 404 },
  { route, name: 'a path with a double slash', change: ({ target }) => ({ target: `/${target}` }), status: 404 },
]);

/** Keys (RFC draft of Idempotency-Key): 1 to 255 printable ASCII characters, once. */
const KEYS: [name: string, key: string | string[], status: 400 | 'good'][] = [
  ['an empty key', '', 400],
  ['a key of 256 characters', 'k'.repeat(256), 400],
  ['a key with a tab', 'a\tb', 400],
  ['a key that is not ASCII', '\u00e9', 400],
  ['two keys', ['a', 'b'], 400],
  ['a key of 255 characters', `${randomUUID()}${'k'.repeat(219)}`, 'good'],
];

const keys: BadRow[] = [RULES, SINGLE, BULK].flatMap((route) =>
  KEYS.map(([name, key, status]) =>
    withHeaders(route, name, { 'idempotency-key': key }, status, status === 400 ? 'Idempotency-Key' : undefined),
  ),
);

const TAGS: [tag: string | string[], status: 400 | 412 | 'good'][] = [
  ['*', 'good'],
  ['1', 400],
  ['"1', 400],
  ['*, "1"', 400],
  ['"a b"', 400],
  ['', 412],
  ['W/"1"', 412],
  ['"0"', 412],
  ['"99999999999999999999"', 412],
  ['"1e0"', 412],
  [['"\u00e9"', 'W/"x"'], 412],
];

const tags: BadRow[] = TAGS.map(([tag, status]) =>
  withHeaders(RULE, `If-Match: ${tag}`, { 'if-match': tag }, status, status === 400 ? 'If-Match' : undefined),
);

const UUID = randomUUID();
const IDS: [name: string, id: string, status: 400 | 404][] = [
  ['a word', 'wallet', 400],
  ['a dash', '-', 400],
  ['a UUID and more', `${UUID}0`, 400],
  ['a UUID without dashes', UUID.replaceAll('-', ''), 400],
  ['a UUID in braces', `%7B${UUID}%7D`, 400],
  ['a UUID and a line', `${UUID}%0A`, 400],
  ['a space', '%20', 400],
  ['a letter of full width', '%EF%BC%A1', 400],
  ['SQL', "'%20or%201=1--", 400],
  ['10,000 characters', 'a'.repeat(10_000), 400],
  ['__proto__', '__proto__', 400],
  ['a UUID of nothing', UUID, 404],
  ['a UUID and a null byte', `${UUID}%00`, 404],
  ['a byte that is no UTF-8', '%FF', 404],
  ['an encoded slash', 'a%2Fb', 404],
  ['a dot segment', '..', 404],
  ['a broken escape', '%', 404],
  ['nothing', '', 404],
];

/** The parameter, and the segment of the path where it stands. */
const PARAMETERS: [route: string, parameter: string, segment: number][] = [
  [RULES, 'wallet_id', 3],
  [RULE, 'wallet_id', 3],
  [RULE, 'id', 5],
  [NETWORK, 'wallet_id', 3],
  [NETWORK, 'network_id', 5],
  [ASSET, 'id', 4],
];

const ids: BadRow[] = PARAMETERS.flatMap(([route, parameter, segment]) => [
  ...IDS.map(
    ([name, id, status]): BadRow => ({
      route,
      name: `${parameter}: ${name}`,
      change: ({ target }) => ({ target: replaced(target, segment, () => id) }),
      status,
      at: status === 400 ? parameter : undefined,
    }),
  ),
  {
    route,
    name: `${parameter}: in upper case`,
    change: ({ target }) => ({ target: replaced(target, segment, (id) => id.toUpperCase()) }),
    status: 'good',
  },
]);

function replaced(target: string, segment: number, by: (id: string) => string): string {
  return target
    .split('/')
    .map((part, at) => (at === segment ? by(part) : part))
    .join('/');
}

const PAGES: [query: string, at: string | undefined][] = [
  ...[
    'page=0',
    'page=-1',
    'page=+1',
    'page=1.0',
    'page=1e1',
    'page=',
    'page',
    'page=%00',
    'page=%D9%A1',
    'page=%FF',
  ].map((query): [string, string] => [query, 'page']),
  ...['page=9007199254740992', 'page=1&page=1', 'page=1&p%61ge=2', 'page=%'].map((query): [string, string] => [
    query,
    'page',
  ]),
  ...[
    'limit=0',
    'limit=101',
    'limit=1e2',
    'limit=+5',
    'limit=0x5',
    'limit=all',
    'limit=5&limit=5',
    'limit=%EF%BC%95',
  ].map((query): [string, string] => [query, 'limit']),
  ['page=9007199254740991', undefined],
  ['page=001&limit=0100', undefined],
  ['page[]=0&__proto__=1&constructor=2', undefined],
  ['include_deleted=true&include_deleted=%ZZ', undefined],
  [`x=${'y'.repeat(15_000)}`, undefined],
];

const pages: BadRow[] = PAGES.map(([query, at]) => ({
  route: ACCOUNTS,
  name: query.slice(0, 60),
  change: () => ({ target: `/v1/accounts?${query}` }),
  status: at === undefined ? 'good' : 400,
  at,
}));

/** A body that nobody asked for is left alone. */
const unasked: BadRow[] = [NETWORK, ACCOUNTS, ASSET, ...PUBLIC].flatMap((route) =>
  ['{', '\0'.repeat(70_000)].map((body) => ({
    route,
    name: `a body of ${body.length} bytes`,
    change: ({ headers }: Sent) => ({ body, headers: { ...headers, 'content-type': 'application/json' } }),
    status: 'good',
  })),
);

/** Faults of the head of a request, route by route. */
export const HEADER_ROWS: readonly BadRow[] = [
  ...[everywhere, bearers, basics, agents, publicly, keys, tags, ids, pages, unasked].flat(),
];

import { gzipSync } from 'node:zlib';
import { type BadRow, BULK, GRAPHQL, RULE, RULES, type Sent, SINGLE } from './bad-request.ts';

const DEEP = 10_000;
const TOKEN = 'POST /v2/oauth/token';
const MANAGEMENT = ['POST /v2/oauth/revoke', 'POST /v2/oauth/introspect'];
const OAUTH = [TOKEN, ...MANAGEMENT];
const WEBHOOK = 'POST /v2/webhooks/custodial';
const REST = [RULES, RULE, WEBHOOK, SINGLE, BULK];
const ROUTES = [...OAUTH, ...REST, GRAPHQL];

/** The greatest body of each route, and what a longer one is answered with. */
const LIMITS: [routes: string[], maxBytes: number, status: number][] = [
  [OAUTH, 64 * 1024, 400],
  [[RULES, RULE, GRAPHQL], 1024 * 1024, 413],
  [[SINGLE], 1024 * 1024, 400],
  [[BULK], 2 * 1024 * 1024, 400],
  [[WEBHOOK, 'POST /v2/webhooks'], 256 * 1024, 400],
];

type Body = string | Buffer | ((good: string) => string | Buffer);

function nested(open: string, close: string): string {
  return `${open.repeat(DEEP)}1${close.repeat(DEEP)}`;
}

/** What no route takes for its body. */
const NO_BODIES: [name: string, body: Body][] = [
  ['nothing', ''],
  ['white space', ' \t\r\n '],
  ['half an object', (good) => good.slice(0, -1)],
  ['two objects', (good) => `${good}${good}`],
  ['a comma too many', (good) => good.replace(/}$/, ',}')],
  ['a comment', (good) => `/* */${good}`],
  ['another kind of quotes', "{'a':'b'}"],
  ['NaN', '{"a":NaN}'],
  ['a null byte behind the object', (good) => `${good}\0`],
  ['a byte that is no UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
  ['an overlong slash in UTF-8', Buffer.from([0x7b, 0x22, 0xc0, 0xaf, 0x22, 0x3a, 0x31, 0x7d])],
  ['a surrogate in UTF-8', Buffer.from([0x7b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x3a, 0x31, 0x7d])],
  ['UTF-16', (good) => Buffer.from(good, 'utf16le')],
  ['null', 'null'],
  ['true', 'true'],
  ['a number', '1'],
  ['1e999', '1e999'],
  ['a text', '"{}"'],
  ['an empty list', '[]'],
  [`lists ${DEEP} deep`, nested('[', ']')],
  ['lists without end', '['.repeat(DEEP)],
];

const noBodies: BadRow[] = ROUTES.flatMap((route) =>
  NO_BODIES.map(([name, body]) => ({
    route,
    name: `the body ${name}`,
    change: (good) => ({ body: bodyOf(good, body) }),
    // A list is a batch, in which each operation is refused for itself.
    status: route === GRAPHQL && name.endsWith('deep') ? 'good' : 400,
  })),
);

/** The token endpoint names nothing. */
function placeOf(route: string, at: string): string | undefined {
  return route === TOKEN ? undefined : at;
}

function bodyOf({ body }: Sent, given: Body): string | Buffer {
  return typeof given === 'function' ? given(String(body)) : given;
}

/** Members beside the good ones: those that nobody knows are ignored. */
const ODD_MEMBERS: [name: string, members: string][] = [
  ['__proto__', '"__proto__":{"polluted":true,"name":5}'],
  ['constructor', '"constructor":{"prototype":{"polluted":true}}'],
  ['toString and hasOwnProperty', '"toString":1,"hasOwnProperty":null'],
  [`an unknown one ${DEEP} deep`, `"unknown":${nested('{"a":', '}')}`],
  ['an unknown number without end', '"unknown":1e999'],
  ['U+0000 and lone surrogates in an unknown one', '"unknown":"\\u0000\\ud800"'],
  ['one without a name', '"":""'],
];

const oddMembers: BadRow[] = [...OAUTH, ...REST].flatMap((route) => [
  ...ODD_MEMBERS.map(
    ([name, members]): BadRow => ({
      route,
      name: `a member more: ${name}`,
      change: ({ body }) => ({ body: `${String(body).slice(0, -1)},${members}}` }),
      status: 'good',
    }),
  ),
  {
    route,
    name: 'each member twice',
    change: ({ body }) => ({ body: `${String(body).slice(0, -1)},${String(body).slice(1)}` }),
    status: 400,
  },
]);

const NO_TYPES = ['text/plain', 'application/xml', 'application/jsonp', 'json', '*/*', 'application/json, text/plain'];
const MORE_NO_TYPES = [
  'application/jsonx;a=b',
  'multipart/form-data; boundary=x',
  'application/json\u00e9',
  '"application/json"',
];
const TYPES = [
  'APPLICATION/JSON',
  'application/json;charset=UTF-8',
  'application/json ; charset="utf-8"; x=y',
  'application/json; charset=utf-16',
];

const types: BadRow[] = ROUTES.flatMap((route) => [
  ...[undefined, ...NO_TYPES, ...MORE_NO_TYPES].map(
    (type): BadRow => ({
      route,
      name: `the content type ${type}`,
      change: ({ headers }) => ({ headers: { ...headers, 'content-type': type } }),
      status: 400,
      // A form may bring a file to GraphQL.
      at: placeOf(route, route === GRAPHQL && type?.startsWith('multipart') ? '' : 'Content-Type'),
    }),
  ),
  ...TYPES.map(
    (type): BadRow => ({
      route,
      name: `the content type ${type}`,
      change: ({ headers }) => ({ headers: { ...headers, 'content-type': type } }),
      status: 'good',
    }),
  ),
  {
    route,
    name: 'a form that is JSON',
    change: ({ headers }) => ({ headers: { ...headers, 'content-type': 'application/x-www-form-urlencoded' } }),
    // Revocation and introspection find no credentials in it.
    status: MANAGEMENT.includes(route) ? 401 : 400,
  },
]);

const BOMB = gzipSync(Buffer.alloc(20 * 1024 * 1024));
const ENCODINGS: [name: string, encoding: string, body: (good: string) => string | Buffer][] = [
  ['gzip', 'gzip', (good) => gzipSync(good)],
  ['gzip that is none', 'gzip', (good) => good],
  ['a gzip bomb', 'GZIP', () => BOMB],
  ['deflate', 'deflate', (good) => good],
  ['two encodings', 'identity, gzip', (good) => good],
  ['an unknown encoding', '__proto__', (good) => good],
];

const encodings: BadRow[] = ROUTES.flatMap((route) => [
  ...ENCODINGS.map(
    ([name, encoding, body]): BadRow => ({
      route,
      name,
      change: (good) => ({ headers: { ...good.headers, 'content-encoding': encoding }, body: body(String(good.body)) }),
      status: 400,
      at: placeOf(route, 'Content-Encoding'),
    }),
  ),
  {
    route,
    name: 'the encoding identity',
    change: ({ headers }) => ({ headers: { ...headers, 'content-encoding': 'Identity' } }),
    status: 'good',
  },
]);

const lengths: BadRow[] = LIMITS.flatMap(([routes, maxBytes, status]) =>
  routes.flatMap((route): BadRow[] => [
    { route, name: 'a byte too many', change: ({ body }) => ({ body: String(body).padEnd(maxBytes + 1) }), status },
    {
      route,
      name: 'not a byte too many',
      change: ({ body }) => ({ body: String(body).padEnd(maxBytes) }),
      status: 'good',
    },
    {
      route,
      name: 'a huge length',
      change: ({ headers }) => ({ headers: { ...headers, 'content-length': '99999999999' } }),
      status,
    },
    {
      route,
      name: 'a length that is too short',
      change: ({ headers, body }) => ({ headers: { ...headers, 'content-length': String(String(body).length - 1) } }),
      status: 400,
    },
  ]),
);

/** What is no HTTP is refused before any route is known. */
const FRAMINGS: [name: string, headers: Sent['headers'], status: 400 | 'closed'][] = [
  ['a length that is no number', { 'content-length': 'x' }, 400],
  ['a length below zero', { 'content-length': '-1' }, 400],
  ['two lengths', { 'content-length': ['2', '3'] }, 400],
  ['a length and chunks', { 'content-length': '2', 'transfer-encoding': 'chunked' }, 400],
  ['chunks that are none', { 'transfer-encoding': 'chunked' }, 400],
  ['an unknown transfer encoding', { 'transfer-encoding': 'gzip' }, 400],
  ['a sender that is gone', { 'content-length': '50000' }, 'closed'],
];

const framings: BadRow[] = [TOKEN, RULES, WEBHOOK, SINGLE, GRAPHQL].flatMap((route) =>
  FRAMINGS.map(
    ([name, headers, status]): BadRow => ({
      route,
      name,
      change: (good) => ({ headers: { ...good.headers, ...headers }, ...(status === 'closed' ? { gone: true } : {}) }),
      status,
      at: status === 400 ? '' : undefined,
    }),
  ),
);

/** Faults of a body that are told alike on every route that takes one. */
export const BODY_ROWS: readonly BadRow[] = [...[noBodies, oddMembers, types, encodings, lengths, framings].flat()];

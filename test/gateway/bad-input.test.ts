import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { readGatewayConfig } from '../../src/gateway/endpoints/gateway-config.ts';
import { type Log, silentLog } from '../../src/lib/log.ts';
import {
  BULK,
  type GoodRoute,
  GRAPHQL,
  goodRoutes,
  RULE,
  RULES,
  type Sent,
  SINGLE,
  sendBytes,
} from '../support/gateway/good-routes.ts';
import type { RawAnswer } from '../support/gateway/raw.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { inTurn } from '../support/harness/in-turn.ts';
import { startPortcullis } from '../support/harness.ts';

/** A request that differs from a good one. */
interface BadRow {
  route: string;
  name: string;
  change: (good: Sent) => Partial<Sent>;
  /** `good`: the status of a good request. */
  status: number | 'good';
  /** The path of one of the issues. */
  at?: string | undefined;
}

type Row = [name: string, change: BadRow['change'], status: BadRow['status'], at?: string];

const { endpoints } = readGatewayConfig(join(import.meta.dirname, '../../gateway.yaml'));
const REGISTERED = endpoints.flatMap(({ methods, path }) => methods.map((method) => `${method} ${path}`));
const TOKEN = 'POST /v2/oauth/token';
const OAUTH = [TOKEN, 'POST /v2/oauth/revoke', 'POST /v2/oauth/introspect'];
const WEBHOOK = 'POST /v2/webhooks/custodial';
const REST = [...OAUTH, RULES, RULE, WEBHOOK, SINGLE, BULK];
const BODILESS = REGISTERED.filter((route) => !/^(?:POST|PUT) |\/mcp|\/session/.test(route));
const DEEP = 10_000;

function text({ body }: Sent): string {
  return String(body);
}

function withBody(body: string | Buffer | ((good: string) => string | Buffer)): BadRow['change'] {
  return (good) => ({ body: typeof body === 'function' ? body(text(good)) : body });
}

function withHeaders(changes: Sent['headers']): BadRow['change'] {
  return ({ headers }) => ({ headers: { ...headers, ...changes } });
}

/** Sends the good credentials and content type three times, under names in both cases. */
function repeatedHeaders({ headers }: Sent): Partial<Sent> {
  const { authorization, 'content-type': type } = headers;
  const repeated = Object.entries({ authorization, 'content-type': type }).flatMap(([name, value]) =>
    value === undefined
      ? []
      : [
          [name, [value, value].flat()],
          [name.toUpperCase(), value],
        ],
  );
  return { headers: { ...headers, ...Object.fromEntries(repeated) } };
}

/** Bodies that no route accepts. */
const BODIES: Row[] = (
  [
    ['nothing', ''],
    ['white space', ' \t\r\n '],
    ['half an object', (good) => good.slice(0, -1)],
    ['two objects', (good) => `${good}${good}`],
    ['a trailing comma', (good) => good.replace(/}$/, ',}')],
    ['NaN', '{"a":NaN}'],
    ['a null byte after the object', (good) => `${good}\0`],
    ['a byte that is not UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
    ['UTF-16', (good) => Buffer.from(good, 'utf16le')],
    ['null', 'null'],
    ['1e999', '1e999'],
    ['a string', '"{}"'],
    ['an empty array', '[]'],
    ['an unclosed array', '['.repeat(DEEP)],
  ] satisfies [string, Parameters<typeof withBody>[0]][]
).map(([name, body]) => [`a body of ${name}`, withBody(body), 400]);

/** Members beside the good ones: unknown members are ignored. */
const MEMBERS: Row[] = (
  [
    ['__proto__', '"__proto__":{"polluted":true,"name":5}', 'good'],
    ['constructor', '"constructor":{"prototype":{"polluted":true}}', 'good'],
    ['a deep unknown member', `"unknown":${'{"a":'.repeat(DEEP)}1${'}'.repeat(DEEP)}`, 'good'],
    ['a number beyond a double', '"unknown":1e999', 'good'],
    ['U+0000 and lone surrogates', '"unknown":"\\u0000\\ud800"', 'good'],
  ] satisfies [string, string, BadRow['status']][]
).map(([name, more, status]) => [`a body with ${name}`, withBody((good) => `${good.slice(0, -1)},${more}}`), status]);

const TYPES: Row[] = [
  ...[undefined, 'text/plain', 'application/jsonx;a=b', '"application/json"', 'application/json, text/plain'].map(
    (type): Row => [`the content type ${type}`, withHeaders({ 'content-type': type }), 400, 'Content-Type'],
  ),
  ...['APPLICATION/JSON', 'application/json ; charset="utf-8"; x=y'].map(
    (type): Row => [`the content type ${type}`, withHeaders({ 'content-type': type }), 'good'],
  ),
];

const ENCODINGS: Row[] = [
  ['gzip', 'gzip', (good: string) => gzipSync(good)],
  ['a gzip bomb', 'GZIP', () => gzipSync(Buffer.alloc(20 * 1024 * 1024))],
  ['two encodings', 'identity, gzip', (good: string) => good],
  ['an unknown encoding', '__proto__', (good: string) => good],
].map(([name, encoding, body]): Row => {
  const change = (good: Sent) => ({
    headers: { ...good.headers, 'content-encoding': String(encoding) },
    body: (body as (good: string) => string | Buffer)(text(good)),
  });
  return [String(name), change, 400, 'Content-Encoding'];
});

const BODY_ROWS = [
  ...every([...REST, GRAPHQL], [...BODIES, ...TYPES, ...ENCODINGS]),
  ...every([...REST, GRAPHQL], [['identity', withHeaders({ 'content-encoding': 'Identity' }), 'good']]),
  ...every(REST, MEMBERS),
  ...every(REST, [['each member twice', withBody((good) => `${good.slice(0, -1)},${good.slice(1)}`), 400]]),
  ...(
    [
      [OAUTH, 64 * 1024, 400],
      [[RULES, RULE, GRAPHQL], 1024 * 1024, 413],
      [[SINGLE], 1024 * 1024, 400],
      [[BULK], 2 * 1024 * 1024, 400],
      [[WEBHOOK, 'POST /v2/webhooks'], 256 * 1024, 400],
    ] as const
  ).flatMap(([routes, maxBytes, status]) =>
    every(routes, [
      [`${maxBytes + 1} bytes`, withBody((good) => good.padEnd(maxBytes + 1)), status],
      [`${maxBytes} bytes`, withBody((good) => good.padEnd(maxBytes)), 'good'],
      ['a huge content length', withHeaders({ 'content-length': '99999999999' }), status],
    ]),
  ),
];

const HEADER_ROWS = [
  ...every(REGISTERED, [
    ['a correlation id of 1,025 bytes', withHeaders({ 'x-correlation-id': 'x'.repeat(1025) }), 400, 'X-Correlation-ID'],
    ['two correlation ids of any bytes', withHeaders({ 'x-correlation-id': ['\u00ff{}', '"; drop'] }), 'good'],
    ['an unknown target', withHeaders({ 'x-target-server': '__proto__' }), 404],
    ['no host', withHeaders({ host: undefined }), 400, 'Host'],
    ['a host with an invalid port', withHeaders({ host: 'a:65536' }), 400, 'Host'],
    ['an unknown expectation', withHeaders({ expect: 'wonders' }), 'good'],
    [
      'an empty X-Target-Server beside another',
      withHeaders({ 'X-Target-Server': 'accounts', 'x-target-server': '' }),
      400,
    ],
    ['headers that repeat one value', repeatedHeaders, 'good'],
    ...(
      [
        ['Authorization', 'Bearer a', 'Bearer b'],
        ['Authorization', '', 'Bearer a'],
        ['Authorization', 'Basic YTpi', 'Bearer a'],
        ['Content-Type', 'application/json', 'text/plain'],
        ['Content-Type', 'application/json', 'application/json; charset=utf-8'],
        ['Content-Type', 'application/json', 'Application/JSON'],
        ['X-Target-Server', 'accounts', 'integration'],
        ['X-Target-Server', 'accounts', 'Accounts'],
      ] as const
    ).map(([name, one, other]): Row => {
      const given = { [name.toLowerCase()]: one, [name.toUpperCase()]: other };
      return [`the ${name} "${one}" and "${other}"`, withHeaders(given), 400, name];
    }),
  ]),
  ...every(BODILESS, [
    [
      'an unread body',
      ({ headers }) => ({ body: '\0'.repeat(70_000), headers: { ...headers, 'content-type': 'x' } }),
      'good',
    ],
  ]),
];

/** Operations and their envelope (GraphQL over HTTP): an operation that cannot run is a 400. */
const OPERATION_ROWS = [
  ...every(
    [GRAPHQL],
    (
      [
        ['a query that is null', '{"query":null}', 400],
        ['a query that is a list', '{"query":["{me{nodeId}}"]}', 400],
        ['a query of a comment', '{"query":"# nothing"}', 400],
        ['a query with U+0000', '{"query":"{me{nodeId}}\\u0000"}', 400],
        ['a query with a lone surrogate', '{"query":"{me{nodeId}}\\ud800"}', 400],
        ['an operation name that is a number', '{"query":"{me{nodeId}}","operationName":5}', 400],
        ['variables that are a list', '{"query":"{me{nodeId}}","variables":[]}', 400],
        ['extensions that are a string', '{"query":"{me{nodeId}}","extensions":"{}"}', 400],
        ['1e999 for an Int', '{"query":"query($n:Int){accounts(first:$n){totalCount}}","variables":{"n":1e999}}', 400],
        ['-0 for an Int', '{"query":"query($n:Int){accounts(first:$n){totalCount}}","variables":{"n":-0}}', 'good'],
        ['an id of a lone surrogate', '{"query":"{account(id:\\"\\ud83d\\ude00\\"){id}}"}', 'good'],
        [
          'a variable named __proto__',
          '{"query":"query($__proto__:ID!){account(id:$__proto__){id}}","variables":{"__proto__":"x"}}',
          'good',
        ],
        ['a deep selection', `{"query":"${'{me'.repeat(DEEP)}"}`, 400],
        [
          'a deep variable',
          `{"query":"{me{nodeId}}","variables":{"x":${'['.repeat(DEEP)}${']'.repeat(DEEP)}}}`,
          'good',
        ],
        ['a batch of null', '[null]', 'good'],
      ] satisfies [string, string, BadRow['status']][]
    ).map(([name, body, status]): Row => [name, withBody(body), status]),
  ),
  ...every(
    ['GET /graphql'],
    (
      [
        ['', 400],
        ['query=%00', 400],
        ['query=%FF', 400],
        ['query=%7Bme%7BnodeId%7D%7D&extensions=1e999', 400],
        ['query=%7Bme%7BnodeId%7D%7D&variables=%7B', 400],
        ['query=%7Bme%7BnodeId%7D%7D&operationName=x', 400],
        ['query=mutation%7BeraseUser(id:1)%7B__typename%7D%7D', 405],
        ['query=%7Bme%7BnodeId%7D%7D&variables=%7B%22__proto__%22:1%7D', 'good'],
      ] satisfies [string, BadRow['status']][]
    ).map(([query, status]): Row => [query, () => ({ target: `/graphql?${query}` }), status]),
  ),
];

/** Each row for each route. The token endpoint's envelope names no member. */
function every(routes: readonly string[], rows: readonly Row[]): BadRow[] {
  return rows.flatMap(([name, change, status, at]) =>
    routes.map((route) => ({ route, name, change, status, at: route === TOKEN ? undefined : at })),
  );
}

const INSIDES = /\n\s+at |node_modules|node:internal|\.ts:\d|SQLSTATE|"stack"|select .+ from|insert into/i;
const MESSAGES: Record<number, string> = {
  400: 'invalid_request',
  404: 'not_found',
  405: 'method_not_allowed',
  413: 'payload_too_large',
};

/** How many rows are sent for each good request between them. */
const GOOD_EVERY = inject('isThorough') ? 5 : 15;
let judged = 0;
const faults: object[] = [];
const log: Log = { ...silentLog, error: (fields) => void faults.push(fields) };
const p = beforeTests(() => startPortcullis({ env: { CONSOLE: 'on' }, overrides: { log } }));
let good: Record<string, GoodRoute>;
let secrets: string[];

beforeAll(async () => {
  good = await goodRoutes(p);
  const authorizations = Object.values(good).map(({ request }) => String(request().headers.authorization ?? ''));
  const shown = authorizations.flatMap((value) => value.split(' ').slice(1));
  secrets = [p.demo.client.client_secret, p.demo.supervisor.password, p.webhook.password, ...shown];
});

async function goodAnswers(): Promise<void> {
  for (const [route, { request, status }] of Object.entries(good)) {
    expect([route, (await sendBytes(p.url, request())).status]).toEqual([route, status]);
  }
}

/** The envelope of a refusal (specification section 2.3), as its route spells it. */
function expectRefusal({ route, at }: BadRow, { status, body, headers }: RawAnswer): void {
  if (route.startsWith('HEAD ')) {
    expect(body).toBe('');
    return;
  }
  expect(headers['content-type']).toMatch(/^application\/(graphql-response\+)?json/);
  const { errors, ...envelope } = JSON.parse(body);
  if (envelope.code === undefined && route.endsWith('/graphql')) {
    expect(errors.map((error: { message: unknown }) => typeof error.message)).toEqual(errors.map(() => 'string'));
    return;
  }
  expect(envelope).toMatchObject({ code: -1, domain: 0, message: MESSAGES[status] ?? 'invalid_request' });
  const oauth =
    (OAUTH.includes(route) || route.includes('/console/session')) && status < 404 ? ['error', 'error_description'] : [];
  expect(['code', 'domain', 'message', ...oauth]).toEqual(expect.arrayContaining(Object.keys(envelope)));
  if (status !== 400 || (route === TOKEN && at === undefined)) {
    expect(errors).toBeUndefined();
    return;
  }
  for (const issue of errors) expect(Object.keys(issue)).toEqual(['path', 'message']);
  if (at !== undefined) expect(errors.map((issue: { path: string }) => issue.path)).toContain(at);
}

/** Sends a row, and judges the answer and the state of the instance after it. */
async function judge(row: BadRow): Promise<void> {
  const { request, status } = good[row.route] ?? {};
  if (!request || status === undefined) throw new Error(`no good request of ${row.route}`);
  const base = request();
  const answer = await sendBytes(p.url, { ...base, ...row.change(base) });
  const expected = row.status === 'good' ? status : row.status;
  const { body } = answer;
  expect(body).not.toMatch(INSIDES);
  for (const secret of secrets) expect(body).not.toContain(secret);
  expect(({} as { polluted?: true }).polluted).toBeUndefined();
  expect([answer.status, body.slice(0, 400)]).toEqual([expected, body.slice(0, 400)]);
  if (expected === row.status && expected >= 400) expectRefusal(row, answer);
  judged += 1;
  if (judged % GOOD_EVERY === 0) expect((await sendBytes(p.url, request())).status).toBe(status);
}

/** In a quick run each change has routes in turn: one of nine, and one at least. */
function ofRun(rows: readonly BadRow[]) {
  const groups = [...Map.groupBy(rows, ({ name }) => name).values()];
  const chosen = groups.flatMap((group, turn) => inTurn(group, 9, turn));
  return chosen.map((row) => [row.route, row.name, row.status, row] as const);
}

describe('bad input gets the documented response, and the instance keeps working', () => {
  it('D2-13: a good request exists for every route, and each is answered', async () => {
    expect(Object.keys(good).sort()).toEqual(REGISTERED.toSorted());
    await goodAnswers();
  });

  it.each(ofRun(BODY_ROWS))('D2-12 D2-13 D2-14: %s: %s: %s', (_route, _name, _status, row) => judge(row));

  it.each(ofRun(HEADER_ROWS))('D2-05 D2-27: %s: %s: %s', (_route, _name, _status, row) => judge(row));

  it.each(ofRun(OPERATION_ROWS))('D2-13 D2-22: %s: %s: %s', (_route, _name, _status, row) => judge(row));

  it('D2-12 D2-13: good requests are still answered, and no internal error was logged', async () => {
    await goodAnswers();
    expect(faults).toEqual([]);
  });
});

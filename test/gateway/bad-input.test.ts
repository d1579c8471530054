import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { readGatewayConfig } from '../../src/gateway/endpoints/gateway-config.ts';
import { type Log, silentLog } from '../../src/lib/log.ts';
import { BODY_ROWS } from '../support/gateway/bad-bodies.ts';
import { HEADER_ROWS } from '../support/gateway/bad-headers.ts';
import { MEMBER_ROWS } from '../support/gateway/bad-members.ts';
import { type BadRow, type GoodRoute, goodRoutes, sendBytes } from '../support/gateway/bad-request.ts';
import type { RawAnswer } from '../support/gateway/raw.ts';
import { inTurn } from '../support/harness/in-turn.ts';
import { type Portcullis, startPortcullis } from '../support/harness.ts';

const ROWS = [...BODY_ROWS, ...HEADER_ROWS, ...MEMBER_ROWS];
const { endpoints } = readGatewayConfig(join(import.meta.dirname, '../../gateway.yaml'));
const registered = endpoints.flatMap(({ methods, path }) => methods.map((method) => `${method} ${path}`));
const TOKEN = 'POST /v2/oauth/token';
const OAUTH = /^POST \/v2\/oauth\//;
const INSIDES = /\n\s+at |node_modules|node:internal|\.ts:\d|SQLSTATE|"stack"|select .+ from|insert into/i;
const MESSAGES: Record<number, string> = {
  400: 'invalid_request',
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not_found',
  405: 'method_not_allowed',
  409: 'idempotency_conflict',
  412: 'precondition_failed',
  413: 'payload_too_large',
};

/** How many rows are sent for each good request between them. */
const GOOD_EVERY = inject('isThorough') ? 5 : 15;
let judged = 0;
const faults: object[] = [];
const log: Log = { ...silentLog, error: (fields) => void faults.push(fields) };
let p: Portcullis;
let good: Record<string, GoodRoute>;
let secrets: string[];
/** Routes whose handler is still to come: whatever reaches them is a 503. */
const pending = new Set<string>();

beforeAll(async () => {
  p = await startPortcullis({ env: { CONSOLE: 'on' }, overrides: { log } });
  good = await goodRoutes(p);
  const { client, supervisor } = p.demo;
  const authorizations = Object.values(good).map(({ request }) => String(request().headers.authorization ?? ''));
  const shown = authorizations.flatMap((value) => value.split(' ').slice(1));
  secrets = [client.client_secret, supervisor.password, p.webhook.password, ...shown];
  for (const [route, { request, status }] of Object.entries(good)) {
    const before = await sendBytes(p.url, request());
    if (before.status === 503) pending.add(route);
    else expect([route, before.status]).toEqual([route, status]);
  }
});
afterAll(() => p[Symbol.asyncDispose]());

async function goodStatus(route: string): Promise<number | undefined> {
  const { request } = good[route] ?? {};
  return request && (await sendBytes(p.url, request())).status;
}

/** The envelope of a refusal (specification section 2.3), as its route spells it. */
function expectRefusal({ route, at, message }: BadRow, { status, body, headers }: RawAnswer): void {
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
  const isOAuth = OAUTH.test(route) && status < 404;
  expect(envelope).toMatchObject({
    code: -1,
    domain: 0,
    message: message ?? (isOAuth ? 'invalid_request' : MESSAGES[status]),
  });
  const beside = isOAuth ? ['error', 'error_description'] : [];
  expect(['code', 'domain', 'message', ...beside]).toEqual(expect.arrayContaining(Object.keys(envelope)));
  // The token endpoint's envelope names nothing, whoever refuses; what has no readable head is of no endpoint.
  const isUnread = at === '' && errors !== undefined;
  const isNamed = status === 400 && message === undefined && (route !== TOKEN || isUnread);
  if (!isNamed) {
    expect(errors).toBeUndefined();
    return;
  }
  for (const issue of errors) expect(Object.keys(issue)).toEqual(['path', 'message']);
  if (at !== undefined) expect(errors.map((issue: { path: string }) => issue.path)).toContain(at);
}

describe('the table', () => {
  it('D2-13: has a row for every route, and a good request too', () => {
    expect(ROWS.length).toBeGreaterThanOrEqual(150);
    const covered = new Set([BODY_ROWS, HEADER_ROWS, MEMBER_ROWS].flatMap(ofRun).map(({ route }) => route));
    expect(registered.filter((route) => !covered.has(route) || good[route] === undefined)).toEqual([]);
    expect([...covered].filter((route) => !registered.includes(route))).toEqual([]);
  });
});

/** Sends a row, and judges the answer and the state of the instance behind it. */
async function judge(row: BadRow): Promise<void> {
  const { route } = row;
  const { request, status } = good[route] ?? {};
  if (!request || status === undefined) throw new Error(`no good request of ${route}`);
  const base = request();
  const answer = await sendBytes(p.url, { ...base, ...row.change(base) });
  const expected = row.status === 'good' ? status : row.status;
  const { body } = answer;
  expect(body).not.toMatch(INSIDES);
  for (const secret of secrets) expect(body).not.toContain(secret);
  expect(({} as { polluted?: true }).polluted).toBeUndefined();
  if (expected === 'closed') expect([0, 400]).toContain(answer.status || 0);
  else if (pending.has(route) && answer.status === 503) expect(body).toContain('service_unavailable');
  else expect([answer.status, body.slice(0, 400)]).toEqual([expected, body.slice(0, 400)]);
  if (answer.status >= 400 && answer.status !== 503) expectRefusal(row, answer);
  judged += 1;
  if (judged % GOOD_EVERY === 0) expect(await goodStatus(route)).toBe(pending.has(route) ? 503 : status);
}

/** In a quick run each change has routes in turn: one of nine, and one at least. */
function ofRun(rows: readonly BadRow[]): BadRow[] {
  const groups = [...Map.groupBy(rows, ({ name }) => name).values()];
  return groups.flatMap((group, turn) => inTurn(group, 9, turn));
}

function named(rows: readonly BadRow[]) {
  return ofRun(rows).map((row) => [row.route, row.name, row.status, row] as const);
}

describe('an answer is the documented one, and the instance goes on', () => {
  it.each(named(BODY_ROWS))('D2-12 D2-13 D2-14: %s: %s: %s', (_route, _name, _status, row) => judge(row));

  it.each(named(HEADER_ROWS))('D2-05 D2-11 D5-06 D5-08: %s: %s: %s', (_route, _name, _status, row) => judge(row));

  it.each(named(MEMBER_ROWS))('D2-13 D2-22: %s: %s: %s', (_route, _name, _status, row) => judge(row));
});

it('D2-13: what the table calls good is good, before and after all of it', async () => {
  for (const [route, { status }] of Object.entries(good)) {
    expect([route, await goodStatus(route)]).toEqual([route, pending.has(route) ? 503 : status]);
  }
});

it('D2-12: none of it was a fault', () => {
  expect(faults).toEqual([]);
});

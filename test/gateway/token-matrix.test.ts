import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { readGatewayConfig } from '../../src/gateway/endpoints/gateway-config.ts';
import { DOCUMENTED } from '../support/gateway/documented.ts';
import { envelope } from '../support/gateway/envelopes.ts';
import { gatewayFile } from '../support/gateway/gateway-file.ts';
import { type GoodRoute, goodRoutes, type Sent, sendBytes } from '../support/gateway/good-routes.ts';
import {
  CALLERS,
  type Caller,
  type Forge,
  ROTATED,
  STATES,
  type TokenState,
  tokenForge,
  type Worth,
} from '../support/gateway/token-states.ts';
import { inTurn } from '../support/harness/in-turn.ts';
import { type Portcullis, startPortcullis } from '../support/harness.ts';

const FILE = join(import.meta.dirname, '../../gateway.yaml');
/** An endpoint of discover tokens, which the shipped file has none of. */
const DISCOVERS = 'GET /v1/discovers/nodes';

/** What an endpoint asks for: nothing; credentials of its own; a token, of callers, with a permission; a token for an operation. */
type Needs =
  | 'nothing'
  | 'basic'
  | 'operation'
  | {
      callers: readonly Caller[];
      permission?: string /** It has operations, each with its own permission. */;
      hasOperations?: true;
    };

const USER_OR_LEGACY: readonly Caller[] = ['login', 'api', 'legacy'];

/** What the documented table says of an endpoint; webhooks and MCP are public and check their callers themselves. */
function needsOf(...[, path, , visibility, [permission]]: (typeof DOCUMENTED)[number]): Needs {
  if (visibility === 'protected') return { callers: USER_OR_LEGACY, ...(permission && { permission }) };
  if (visibility === 'optional') return 'operation';
  if (path.startsWith('/v2/webhooks')) return 'basic';
  return path.startsWith('/v2/mcp') ? { callers: ['login', 'api'], hasOperations: true } : 'nothing';
}

const ENDPOINTS: Record<string, Needs> = {
  ...Object.fromEntries(DOCUMENTED.map((row) => [`${row[0]} ${row[1]}`, needsOf(...row)])),
  [DISCOVERS]: { callers: ['discover'] },
};

const EVERYTHING = [
  ...new Set(Object.values(ENDPOINTS).flatMap((needs) => (typeof needs === 'object' && needs.permission) || [])),
];

type Verdict = 'served' | 'unauthorized' | 'forbidden' | 'basic';

/** What the decisions say of a token (or none) at an endpoint. */
function verdictOn(needs: Needs, caller: Caller | undefined, worth: Worth): Verdict {
  if (needs === 'nothing') return 'served';
  if (needs === 'basic') return needs;
  const callers = needs === 'operation' ? USER_OR_LEGACY : needs.callers;
  if (caller === undefined || !callers.includes(caller) || worth === 'bad') return 'unauthorized';
  // A token for a new password opens nothing that has operations.
  if (needs === 'operation' || needs.hasOperations) return worth === 'forgot_password' ? 'unauthorized' : 'served';
  return worth === 'good' || needs.permission === undefined ? 'served' : 'forbidden';
}

let p: Portcullis;
const stack = new AsyncDisposableStack();
let good: Record<string, GoodRoute>;
let forge: Forge;
/** What an endpoint answers a good request. */
const served = new Map<string, number>();

beforeAll(async () => {
  const file = stack.use(
    await gatewayFile({}, [
      { methods: ['GET'], path: '/v1/discovers/nodes', services: ['integration'], tokens: ['discover'] },
    ]),
  );
  p = stack.use(await startPortcullis({ env: { CONSOLE: 'on', GATEWAY_CONFIG: file.path, ...ROTATED } }));
  forge = await tokenForge(p);
  const discover = STATES[0]?.forge(forge, 'discover', '') ?? '';
  const headers = { authorization: `Bearer ${discover}` };
  good = {
    ...(await goodRoutes(p)),
    [DISCOVERS]: { status: 503, request: () => ({ method: 'GET', target: '/v1/discovers/nodes', headers }) },
  };
  for (const [route, { request }] of Object.entries(good)) {
    const { status } = await sendBytes(p.url, request());
    // There is no export: who is served learns that.
    expect([route, [401, 403, 404].includes(status)]).toEqual([route, route.includes('/audit-exports/')]);
    served.set(route, status);
  }
});
afterAll(() => stack.disposeAsync());

/** What the header of a 403 says of the permission that an endpoint needs. */
function missing(needs: Needs | undefined): string {
  const scope = typeof needs === 'object' ? needs.permission : undefined;
  return `Bearer error="insufficient_scope", scope="${scope}"`;
}

/** How many addresses bearers came from at MCP, which may be guessed secrets. */
let addresses = 0;

/** What the header says of a token (RFC 6750 section 3.1). */
const CHALLENGES = {
  expired: 'Bearer error="invalid_token", error_description="the token has expired"',
  revoked: 'Bearer error="invalid_token", error_description="the token has been revoked"',
  other: 'Bearer error="invalid_token", error_description="the token is not valid"',
} as const;

/** What the header of a 401 says of a token in this state. */
function challengeOf(needs: Needs, caller: Caller, { isForged, becomes = caller, told, worth }: TokenState): string {
  if (isForged) return CHALLENGES.other;
  const callers = typeof needs === 'object' ? needs.callers : USER_OR_LEGACY;
  if (!callers.includes(becomes)) return otherClass(classOf(becomes), [...new Set(callers.map(classOf))].join(' or '));
  if (told === 'refresh') return otherClass('refresh', 'access');
  return worth === 'forgot_password' ? otherClass(worth, 'login or api') : CHALLENGES[told ?? 'other'];
}

function otherClass(given: string, needed: string): string {
  const description = `the token belongs to another class: ${given}, but ${needed} is required`;
  return `Bearer error="invalid_token", error_description="${description}"`;
}

function classOf(caller: Caller): string {
  return caller === 'login' || caller === 'api' ? 'user' : caller;
}

async function judge(
  route: string,
  verdict: Verdict,
  authorization: string | undefined,
  challenge = 'Bearer',
): Promise<void> {
  const base = good[route]?.request() as Sent;
  const isMcp = / \/v2\/mcp/.test(route);
  // Whoever tries many secrets from one address is told to wait.
  const from = isMcp ? { 'x-forwarded-for': `198.51.${addresses >> 8}.${addresses++ & 255}` } : {};
  const answer = await sendBytes(p.url, { ...base, headers: { ...base.headers, ...from, authorization } });
  if (verdict === 'served') {
    expect([route, answer.status]).toEqual([route, served.get(route)]);
    expect(answer.headers['www-authenticate']).toBeUndefined();
    return;
  }
  const [status, message] = verdict === 'forbidden' ? ([403, 'forbidden'] as const) : ([401, 'unauthorized'] as const);
  const given = { forbidden: missing(ENDPOINTS[route]), basic: 'Basic realm="portcullis", charset="UTF-8"' };
  expect([route, answer.status, answer.body]).toEqual([route, status, envelope(message)]);
  const metadata = `resource_metadata="${p.url}/.well-known/oauth-protected-resource/v2/mcp"`;
  const named = isMcp ? `${challenge}${challenge === 'Bearer' ? '' : ','} ${metadata}` : challenge;
  expect(answer.headers['www-authenticate']).toBe({ ...given, unauthorized: named }[verdict]);
  expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
}

const shown = STATES.flatMap((state) =>
  (state.callers ?? CALLERS).map((caller): [string, string, Caller, TokenState] => [caller, state.name, caller, state]),
).map((row, turn) => [...row, turn] as const);
/** Values of Authorization without a token, and the challenge that they get. */
const NO_TOKENS = [
  ...[undefined, '', 'Bearer', 'Bearer ', 'Digest eDp5', 'Token x'].map((text) => [text, 'Bearer'] as const),
  ...['Bearer null', 'Bearer a b', 'bearer a.b.c'].map((text) => [text, CHALLENGES.other] as const),
].map((row, turn) => [...row, turn] as const);

const KINDS = Map.groupBy(Object.entries(ENDPOINTS), ([, needs]) => {
  if (typeof needs === 'object') return needs.permission === undefined ? 'token' : 'permission';
  return needs === 'operation' ? 'token' : 'other';
});

/** In a quick run a state has its turn at an endpoint that needs a permission, at one that needs a token, and at another. */
function shownTo(turn: number): [string, Needs][] {
  if (inject('isThorough')) return Object.entries(ENDPOINTS);
  return [...KINDS.values()].flatMap((kind) => kind.slice(turn % kind.length).slice(0, 1));
}

const EVERY = 3;

describe('a token at every endpoint', () => {
  it('D2-01 5.1-01: (the table has every endpoint and over a thousand cases)', () => {
    const { endpoints } = readGatewayConfig(FILE);
    const registered = endpoints.flatMap(({ methods, path }) => methods.map((method) => `${method} ${path}`));
    expect(Object.keys(ENDPOINTS).sort()).toEqual([...registered, DISCOVERS].sort());
    expect(shown.length * Object.keys(ENDPOINTS).length).toBeGreaterThan(1_000);
  });

  it.each(shown)(
    '1-02 D8-08 5.1-01 5.1-02 5.1-03 5.1-04 5.1-05 5.1-06 5.1-07 7.6-02 7.6-03 D2-11 D2-12 D2-17 D3-24 D3-27 D3-32: %s token (%s) is served or rejected as documented',
    async (_caller, _state, caller, state, turn) => {
      const cases = shownTo(turn).map(([route, needs]) => {
        const bearer = `Bearer ${state.forge(forge, caller, EVERYTHING.join(' '))}`;
        const verdict = verdictOn(needs, state.becomes ?? caller, state.worth);
        return judge(route, verdict, bearer, challengeOf(needs, caller, state));
      });
      await Promise.all(cases);
    },
  );

  it.each(NO_TOKENS)(
    '1-02 5.1-01 7.6-02 D2-11 D3-32: without a token, with the Authorization header %j: %s',
    async (authorization, challenge, turn) => {
      const cases = inTurn(Object.entries(ENDPOINTS), EVERY, turn).map(([route, needs]) =>
        judge(route, verdictOn(needs, undefined, 'bad'), authorization, challenge),
      );
      await Promise.all(cases);
    },
  );

  it.each(USER_OR_LEGACY.map((caller, turn) => [caller, turn] as const))(
    '5.1-07 D3-32: %s: each permission opens exactly the endpoints that require it',
    async (caller, turn) => {
      for (const [at, permission] of EVERYTHING.entries()) {
        const bearer = `Bearer ${STATES[0]?.forge(forge, caller, permission)}`;
        const cases = inTurn(KINDS.get('permission') ?? [], EVERY, at + turn).map(([route, needs]) => {
          const isOpened = typeof needs === 'object' && needs.permission === permission;
          return judge(route, isOpened ? 'served' : 'forbidden', bearer);
        });
        await Promise.all(cases);
      }
    },
  );
});

it('1-02: the good requests are still answered', async () => {
  for (const [route, { request }] of Object.entries(good)) {
    expect([route, (await sendBytes(p.url, request())).status]).toEqual([route, served.get(route)]);
  }
});

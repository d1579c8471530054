import fc from 'fast-check';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { normalTarget } from '../../src/gateway/exchange/request-head.ts';
import { recordOf } from '../support/audit/records.ts';
import { envelope } from '../support/gateway/envelopes.ts';
import { startForwarder, startUpstream } from '../support/gateway/forwarder.ts';
import {
  ASSET,
  BULK,
  type GoodRoute,
  goodRoutes,
  NETWORK,
  RULE,
  RULES,
  SINGLE,
  sendBytes,
} from '../support/gateway/good-routes.ts';
import { SPELLINGS, type Spelling } from '../support/gateway/path-spellings.ts';
import { request, sendRaw } from '../support/gateway/raw.ts';
import { inTurn } from '../support/harness/in-turn.ts';
import { usePortcullis } from '../support/harness.ts';
import { rows } from '../support/oauth/clients.ts';
import { apiClaims, signed } from '../support/oauth/jwt.ts';

/** The protected paths, and the permission that each needs. */
const PERMISSIONS: Record<string, string> = {
  [RULES]: 'wallet-rules:write',
  [RULE]: 'wallet-rules:write',
  [NETWORK]: 'wallets:write',
  [SINGLE]: 'users:migrate',
  [BULK]: 'users:migrate',
  'GET /v1/accounts': 'accounts:read',
  [ASSET]: 'tokens:read',
};
const PUBLIC = [
  'GET /v2/health',
  'HEAD /v1/health',
  'GET /.well-known/oauth-authorization-server',
  'POST /v2/oauth/token',
];

/** Who asks: with every right, with every one but that which is needed, or without a token. */
const CALLERS = ['full', 'powerless', 'nobody'] as const;

interface Asked {
  target: string;
  /** The path of a good request. */
  path: string;
  status: number;
  verdict: Spelling['verdict'];
  /** Whether it got as far as the gateway. */
  isRequest: boolean;
}

const p = usePortcullis();
let good: Record<string, GoodRoute>;
const powerless = new Map<string, string>();
const asked = new Map<string, Asked>();

beforeAll(async () => {
  good = await goodRoutes(p);
  const every = [...new Set(Object.values(PERMISSIONS))];
  for (const [route, needed] of Object.entries(PERMISSIONS)) {
    const scope = every.filter((permission) => permission !== needed).join(' ');
    powerless.set(route, `Bearer ${signed(p, apiClaims(p, { scope }))}`);
  }
});

function authorizationOf(route: string, caller: (typeof CALLERS)[number], own: string | undefined): string | undefined {
  if (PUBLIC.includes(route) || caller === 'full') return own;
  return caller === 'powerless' ? powerless.get(route) : undefined;
}

function expectedOf(
  route: string,
  caller: (typeof CALLERS)[number],
  { verdict }: Spelling,
): [number, string | undefined] {
  if (verdict === 'no request') return [400, undefined];
  if (verdict !== 'same') return [404, envelope('not_found')];
  if (PUBLIC.includes(route) || caller === 'full') return [good[route]?.status ?? 0, undefined];
  return caller === 'powerless' ? [403, envelope('forbidden')] : [401, envelope('unauthorized')];
}

/** Whether a route's path has what the spelling changes. */
function isOf({ literal, verdict, spell }: Spelling, route: string): boolean {
  const { target = '' } = good[route]?.request() ?? {};
  return !(literal && route.includes('{')) && (verdict === 'same' || spell(target) !== target);
}

async function judge(route: string, caller: (typeof CALLERS)[number], spelling: Spelling): Promise<void> {
  const base = good[route]?.request();
  if (!base) throw new Error(`no good request of ${route}`);
  const { verdict } = spelling;
  const target = spelling.spell(base.target);
  const id = `path-${asked.size}`;
  const [status, body] = expectedOf(route, caller, spelling);
  const row: Asked = { target, path: base.target, status, verdict, isRequest: false };
  asked.set(id, row);
  const authorization = authorizationOf(route, caller, String(base.headers.authorization ?? '') || undefined);
  const headers = { ...base.headers, authorization, 'x-correlation-id': id };
  const answer = await sendBytes(p.url, { ...base, target, headers });
  expect([route, caller, target.slice(0, 200), answer.status]).toEqual([route, caller, target.slice(0, 200), status]);
  if (body !== undefined && base.method !== 'HEAD') expect(answer.body).toBe(body);
  row.isRequest = answer.headers['x-correlation-id'] === id;
  if (verdict === 'same') expect(row.isRequest).toBe(true);
}

/** In a quick run a spelling is asked for about twice, and each path by each caller has its turn. */
const EVERY = 13;

describe('a spelling of a path', () => {
  it('D2-04: (there are at least 80, with distinct names)', () => {
    expect(SPELLINGS.length).toBeGreaterThanOrEqual(80);
    expect(new Set(SPELLINGS.map(({ name }) => name)).size).toBe(SPELLINGS.length);
  });

  it.each(SPELLINGS.map((spelling, turn) => [spelling.name, spelling.verdict, spelling, turn] as const))(
    'D2-04 D2-15 D2-02: %s: is %s, for every caller and every path',
    async (_name, _verdict, spelling, turn) => {
      const every = [...Object.keys(PERMISSIONS), ...PUBLIC].filter((route) => isOf(spelling, route));
      expect(every).not.toEqual([]);
      const asks = every.flatMap((route) =>
        (PUBLIC.includes(route) ? CALLERS.slice(0, 1) : CALLERS).map((caller) => [route, caller] as const),
      );
      await Promise.all(inTurn(asks, EVERY, turn).map(([route, caller]) => judge(route, caller, spelling)));
    },
  );
});

it('D2-07 1-04: each request is recorded once, with the path that was served or else the target as sent', async () => {
  const { spool } = p.service.context;
  await vi.waitFor(() => expect(spool.pendingBytes).toBe(0));
  const records = await rows(p).run((k) =>
    k
      .selectFrom('audit_records')
      .select(['correlation_id', 'path', 'status_code'])
      .where('correlation_id', 'like', 'path-%'),
  );
  const recorded = Map.groupBy(records, (record) => record.correlation_id);
  const wrong: unknown[] = [];
  for (const [id, { target, path, status, verdict, isRequest }] of asked) {
    const sent = target.replace(/\?.*/s, '').replaceAll('\0', '\ufffd');
    // User and password of a URL are recorded nowhere.
    const whole = verdict === 'same' ? path : sent.replace(/^(https?:\/\/)[^/]*@/i, '$1');
    const kept = recorded.get(id) ?? [];
    const own = { correlation_id: id, path: shownOf(whole, kept[0]?.path), status_code: status };
    const expected = isRequest ? [own] : [];
    if (JSON.stringify(kept) !== JSON.stringify(expected)) wrong.push([expected, kept]);
  }
  expect(wrong.slice(0, 5)).toEqual([]);
});

it('1-05: a token in the path is not recorded', async () => {
  const headers = { 'X-Correlation-ID': 'token-in-path' };
  await p.call('GET', `/v1/accounts/${await p.clientToken()}`, { headers });
  expect((await recordOf(p, 'token-in-path')).path).toBe('/v1/accounts/***');
});

/** Of a path over 8 KiB its beginning is recorded, and of what a secret's name has for a value nothing. */
function shownOf(path: string | undefined, kept = ''): string | undefined {
  const whole = path?.replace(/(token[:=]).*/s, '$1***');
  const isCut = (whole?.length ?? 0) > 8 * 1024 && kept.endsWith('…') && kept.length > 8_000;
  return isCut && whole?.startsWith(kept.slice(0, -1)) ? kept : whole;
}

describe('a hostile path', () => {
  it('D2-04: gets a 404 also as a preflight and for a public endpoint', async () => {
    for (const target of ['/health/..', '//health', '/v1/../health', '/v1%2Fhealth', '/health%00', '/\\health']) {
      for (const method of ['GET', 'OPTIONS', 'HEAD']) {
        const answer = await sendRaw(p.url, request(method, target));
        expect([method, target, answer.status]).toEqual([method, target, 404]);
      }
    }
  });

  it('D2-26: a dot segment with a parameter is treated as a dot segment, for local and remote services', async () => {
    const dots = ['.', '..', '%2e', '%2E%2e', '.%2e', '%2e.'];
    const parameters = [';', ';x', ';a=b', '%3B', '%3bx', ';%2e%2e', ';%3b;', '%3B..', ';a=%2561'];
    const segments = dots.flatMap((dot) => parameters.map((parameter) => `${dot}${parameter}`));
    const targets = segments.flatMap((segment) => [segment, `${segment}/x`, `x/${segment}/y`, `x/${segment}?q`]);
    await using upstream = await startUpstream((_req, res) => res.end('reached'));
    await using f = await startForwarder({ services: { a: upstream.url } });
    for (const target of targets) {
      expect([target, (await sendRaw(p.url, request('GET', `/v2/mcp/${target}`))).status]).toEqual([target, 404]);
      expect([target, (await sendRaw(f.url, request('GET', `/${target}`))).status]).toEqual([target, 404]);
    }
    expect(upstream.seen).toEqual([]);
    // A parameter of another segment is a part of its name, and so are dots that are decoded twice.
    for (const other of ['/a;..', '/..a;x', '/...;', '/a;x/b', '/..%253Bx', '/a..;'])
      expect([other, (await sendRaw(f.url, request('GET', other))).status]).toEqual([other, 200]);
  });

  it('D2-04: normalization is idempotent, and a normal path has nothing that a service could read differently', () => {
    const part = fc.constantFrom(...String.raw`a .. . / ; %3b \ %2f %5C %00 %2e %61 %25 % ? %c3%a9 v1`.split(' '));
    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), (parts) => {
        const normal = normalTarget(`/${parts.join('')}`);
        if (!normal) return;
        expect(normalTarget(normal.path)).toEqual({ path: normal.path, query: '' });
        expect(decodeURIComponent(normal.path)).not.toMatch(/\/\/|\\|\0|\/\.\.?([;/]|$)/);
        expect(normal.path).not.toMatch(/%(2f|5c|00|61)/i);
      }),
    );
  });
});

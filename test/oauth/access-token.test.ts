import { randomUUID } from 'node:crypto';
import { SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { envelope } from '../support/gateway/envelopes.ts';
import { type Portcullis, startPortcullis } from '../support/harness.ts';
import { addClient } from '../support/oauth/clients.ts';
import { apiClaims, encoded, signed } from '../support/oauth/jwt.ts';

/** Where the service's clock stands: a token that ends in a second is good however long a request takes. */
const NOW_MS = Date.now();

let p: Portcullis;
beforeAll(async () => {
  p = await startPortcullis({ overrides: { nowMs: () => NOW_MS } });
});
afterAll(() => p[Symbol.asyncDispose]());

function now(): number {
  return Math.floor(p.service.context.nowMs() / 1000);
}

async function statusOf(token: string): Promise<number> {
  return (await p.call('GET', '/v1/accounts', { token })).status;
}

const REFUSED = /^Bearer error="invalid_token", error_description="the token [a-z :,]+"$/;

async function expectUnauthorized(authorization: string | undefined): Promise<void> {
  const headers: Record<string, string> = authorization === undefined ? {} : { authorization };
  const answer = await p.call('GET', '/v1/accounts', { headers });
  expect(answer.status).toBe(401);
  expect(answer.text).toBe(envelope('unauthorized'));
  const isShown = /^Bearer +\S/i.test(authorization ?? '');
  expect(answer.headers.get('www-authenticate')).toMatch(isShown ? REFUSED : /^Bearer$/);
}

const schemes = [
  '',
  'Bearer',
  'Bearer ',
  'Basic eDp5',
  'Token x',
  'Bearer a b',
  'Bearer,x',
  'Bearer ..',
  'Bearer a.b.c',
  'x',
];

describe('a protected endpoint', () => {
  it('5.1-01 7.6-02 D2-11: without Authorization is a 401 with a challenge', () => expectUnauthorized(undefined));

  it.each(schemes)('7.6-02 D2-11: Authorization "%s" is a 401', (header) => expectUnauthorized(header));

  it('5.1-01: takes a good token, whatever the case of its scheme', async () => {
    const token = await p.clientToken();
    for (const scheme of ['Bearer', 'bearer', 'BEARER', 'Bearer  ']) {
      const answer = await p.call('GET', '/v1/accounts', { headers: { authorization: `${scheme} ${token}` } });
      expect(answer.status).toBe(200);
    }
  });
});

type Forge = () => string | Promise<string>;
const other = 'another secret, as long as the right one';

/** Tokens of the user class that must not pass; each differs from a good one in one thing. */
const refused: [string, Forge][] = [
  ['expired', () => signed(p, apiClaims(p, { exp: now() - 1 }))],
  ['expiring now', () => signed(p, apiClaims(p, { exp: now() }))],
  ['with nbf in the future', () => signed(p, apiClaims(p, { nbf: now() + 60 }))],
  ['with an exp that is no number', () => signed(p, apiClaims(p, { exp: String(now() + 60) }))],
  ['with a null exp', () => signed(p, apiClaims(p, { exp: null }))],
  ['with an nbf that is no number', () => signed(p, apiClaims(p, { nbf: '0' }))],
  ['without token_use', () => signed(p, apiClaims(p, { token_use: undefined }))],
  ['with token_use refresh', () => signed(p, apiClaims(p, { token_use: 'refresh' }))],
  ['with an unknown token_use', () => signed(p, apiClaims(p, { token_use: 'admin' }))],
  ['with token_use __proto__', () => signed(p, apiClaims(p, { token_use: '__proto__' }))],
  ['without sub', () => signed(p, apiClaims(p, { sub: undefined }))],
  ['with an empty sub', () => signed(p, apiClaims(p, { sub: '' }))],
  ['with a sub that is no string', () => signed(p, apiClaims(p, { sub: 7 }))],
  ['without aud', () => signed(p, apiClaims(p, { aud: undefined }))],
  ['for an unknown node', () => signed(p, apiClaims(p, { aud: randomUUID() }))],
  ['for an aud that is no UUID', () => signed(p, apiClaims(p, { aud: 'demo' }))],
  ['for two audiences', () => signed(p, apiClaims(p, { aud: [p.demo.node_id, p.demo.other_node.node_id] }))],
  ['for an array of one audience', () => signed(p, apiClaims(p, { aud: [p.demo.node_id] }))],
  ["for another node than its client's", () => signed(p, apiClaims(p, { aud: p.demo.other_node.node_id }))],
  ['of an unknown client', () => signed(p, apiClaims(p, { client_id: randomUUID() }))],
  ['of a client_id that is no UUID', () => signed(p, apiClaims(p, { client_id: 'x' }))],
  ['with a scope that is no string', () => signed(p, apiClaims(p, { scope: ['accounts:read'] }))],
  ['signed by another secret', () => signed(p, apiClaims(p), { secret: other })],
  ['signed by the discover secret', () => signed(p, apiClaims(p), { secret: secret('discover') })],
  ['signed by the pepper', () => signed(p, apiClaims(p), { secret: p.service.context.secrets.pepper.current })],
  [
    'with a legacy kid and the user secret',
    () => signed(p, apiClaims(p), { header: { kid: 'legacy.0000000000000000' } }),
  ],
  ['with an unknown kid', () => signed(p, apiClaims(p), { header: { kid: 'user.0000000000000000' } })],
  ['with kid __proto__', () => signed(p, apiClaims(p), { header: { kid: '__proto__' } })],
  ['with alg none', () => `${encoded({ alg: 'none' })}.${encoded(apiClaims(p))}.`],
  ['with alg None and a signature', () => signed(p, apiClaims(p), { header: { alg: 'None' } })],
  ['with alg hs256', () => signed(p, apiClaims(p), { header: { alg: 'hs256' } })],
  ['with HS512', () => signed(p, apiClaims(p), { header: { alg: 'HS512' }, hash: 'sha512' })],
  ['with RS256 and the secret as its key', () => signed(p, apiClaims(p), { header: { alg: 'RS256' } })],
  ['without alg', () => signed(p, apiClaims(p), { header: { alg: undefined } })],
  ['with an alg that is no string', () => signed(p, apiClaims(p), { header: { alg: ['HS256'] } })],
  ['with an unknown crit', () => signed(p, apiClaims(p), { header: { crit: ['x'], x: 1 } })],
  ['with an empty crit', () => signed(p, apiClaims(p), { header: { crit: [] } })],
  ['with an unencoded payload', () => signed(p, apiClaims(p), { header: { crit: ['b64'], b64: false } })],
  ['whose claims are an array', () => signed(p, [apiClaims(p)] as never)],
  ['whose claims are null', () => signed(p, null as never)],
  ['whose claims are text', () => signed(p, 'claims' as never)],
  ['with one part', () => 'eyJhbGciOiJIUzI1NiJ9'],
  ['with two parts', () => p.clientToken().then((token) => token.split('.').slice(0, 2).join('.'))],
  ['with four parts', () => p.clientToken().then((token) => `${token}.x`)],
  ['with five parts, as an encrypted one', () => 'a.b.c.d.e'],
  ['that is cut short', () => p.clientToken().then((token) => token.slice(0, -1))],
  ['without its signature', () => p.clientToken().then((token) => token.replace(/[^.]+$/, ''))],
  ['whose header is no JSON', () => `${Buffer.from('{').toString('base64url')}.${encoded({})}.${'A'.repeat(43)}`],
  ['whose header is null', () => `${encoded(null)}.${encoded({})}.${'A'.repeat(43)}`],
  ['of 12 KB', () => signed(p, apiClaims(p, { scope: 'x'.repeat(9_000) }), { secret: other })],
  ['of 12 KB without a form', () => 'a'.repeat(12 * 1024)],
  ['of 12 KB of dots', () => '.'.repeat(12 * 1024)],
  ['of the login kind without a session', () => signed(p, apiClaims(p, { token_use: 'login' }))],
  [
    'of the login kind with an unknown session',
    () => signed(p, apiClaims(p, { token_use: 'login', sid: randomUUID() })),
  ],
];

function secret(tokenClass: 'discover' | 'legacy'): string {
  return p.service.context.secrets.jwt[tokenClass].current;
}

describe('a token that must not pass', () => {
  it('D3-01: (the one that the table changes passes)', async () => {
    expect(await statusOf(signed(p, apiClaims(p)))).toBe(200);
    expect(await statusOf(signed(p, apiClaims(p, { exp: now() + 1, nbf: now() })))).toBe(200);
    expect(await statusOf(signed(p, apiClaims(p, { client_id: undefined, aud: p.demo.node_id.toUpperCase() })))).toBe(
      200,
    );
  });

  it.each([8.64e12, 8.64e12 + 1, 1e300, 1e308])(
    'D3-01: an exp of %d is good, and is told as a date at most',
    async (exp) => {
      const token = signed(p, apiClaims(p, { exp }));
      const answer = await p.call('POST', '/graphql', { token, json: { query: '{ me { expiresAt } }' } });
      expect(answer.json).toEqual({ data: { me: { expiresAt: '+275760-09-13T00:00:00.000Z' } } });
    },
  );

  it.each(refused)('7.6-02 D3-01 D3-24: %s is a 401', async (_name, forge) => {
    await expectUnauthorized(`Bearer ${await forge()}`);
  });

  it('D3-25: every second spelling of a good signature is a 401, before and after the good one was seen', async () => {
    const fresh = signed(p, apiClaims(p));
    const seen = await p.clientToken();
    await statusOf(seen);
    for (const token of [fresh, seen]) {
      const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
      const last = alphabet.indexOf(token.slice(-1));
      const spellings = [1, 2, 3].map((low) => token.slice(0, -1) + alphabet.charAt((last & ~3) | low));
      for (const spelling of [
        ...spellings,
        `${token}=`,
        `${token}==`,
        `${token}A`,
        token.replace(/\.([^.]+)$/, '.=$1'),
      ]) {
        await expectUnauthorized(`Bearer ${spelling}`);
      }
    }
    expect(await statusOf(fresh)).toBe(200);
  });

  it('7.6-02: one changed character in any part is a 401', async () => {
    const token = await p.clientToken();
    const [header = '', payload = ''] = token.split('.');
    const places = [2, header.length - 2, header.length + 20, header.length + payload.length - 3, token.length - 20];
    for (const at of places) {
      const changed = token[at] === 'A' ? 'B' : 'A';
      await expectUnauthorized(`Bearer ${token.slice(0, at)}${changed}${token.slice(at + 1)}`);
    }
  });
});

describe('the classes of tokens', () => {
  it('5.1-02 5.1-04 D2-17: a legacy token passes beside user tokens: API kind, rights by scope, no kid needed', async () => {
    const claims = { sub: 'integration-7', aud: p.demo.node_id, scope: 'accounts:read' };
    expect(await statusOf(signed(p, claims, { secret: secret('legacy') }))).toBe(200);
    expect(await statusOf(signed(p, { ...claims, scope: '' }, { secret: secret('legacy') }))).toBe(403);
    expect(await statusOf(signed(p, { sub: 'x', aud: p.demo.node_id }, { secret: secret('legacy') }))).toBe(403);
    expect(await statusOf(signed(p, { ...claims, client_id: 'unknown' }, { secret: secret('legacy') }))).toBe(200);
  });

  it('D2-17: a legacy token needs sub and aud, and its known client must be of that node and active', async () => {
    const claims = { sub: 'x', aud: p.demo.node_id, scope: 'accounts:read' };
    const disabled = await addClient(p, { status: 'disabled' });
    const faults = [
      { sub: undefined },
      { aud: undefined },
      { aud: randomUUID() },
      { client_id: p.demo.other_node.client.client_id },
      { client_id: disabled.client_id },
      { token_use: 'refresh' },
    ];
    for (const fault of faults) {
      await expectUnauthorized(`Bearer ${signed(p, { ...claims, ...fault }, { secret: secret('legacy') })}`);
    }
  });

  it('D2-17: the guards apply where the client of a legacy token is known', async () => {
    const { client_id } = await addClient(p, { allowed_ips: ['198.51.100.7'] });
    const claims = { sub: 'x', aud: p.demo.node_id, scope: 'accounts:read', client_id };
    const answer = await p.call('GET', '/v1/accounts', { token: signed(p, claims, { secret: secret('legacy') }) });
    expect([answer.status, answer.text]).toEqual([403, envelope('ip_not_allowed')]);
  });

  it('D3-01: a token that jose signed with the same secret passes', async () => {
    const key = Buffer.from(p.service.context.secrets.jwt.user.current, 'utf8');
    const token = await new SignJWT(apiClaims(p)).setProtectedHeader({ alg: 'HS256' }).sign(key);
    expect(await statusOf(token)).toBe(200);
  });
});

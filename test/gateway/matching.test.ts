import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Endpoint } from '../../src/gateway/endpoints/gateway-config.ts';
import { EndpointTable } from '../../src/gateway/routing.ts';
import { envelope } from '../support/gateway/envelopes.ts';
import { request, sendRaw } from '../support/gateway/raw.ts';
import { type Portcullis, startPortcullis } from '../support/harness.ts';

let p: Portcullis;
let token: string;
beforeAll(async () => {
  p = await startPortcullis();
  token = await p.clientToken();
});
afterAll(() => p[Symbol.asyncDispose]());

describe('matching', () => {
  it.each([
    ['GET', '/v1/accounts/'],
    ['GET', '/V1/accounts'],
    ['GET', '/v1/Accounts'],
    ['GET', '/v1/accounts.json'],
    ['GET', '/v1/accounts;x=1'],
    ['HEAD', '/v1/accounts'],
    ['get', '/v1/accounts'],
    ['POST', '/v1/accounts'],
    ['GET', '/health/'],
    ['GET', '/Health'],
    ['HEAD', '/swagger'],
    ['GET', '/swagger/a/b'],
    ['HEAD', '/swagger/a'],
    ['HEAD', '/v2/blockchain/gas-fee'],
    ['GET', '/v2/oauth/token'],
    ['POST', '/v2/oauth/token/'],
    ['PATCH', '/v1/wallets/a/rules/b'],
    ['PUT', '/v1/wallets/a/rules'],
    ['POST', '/v1/wallets//rules'],
    ['DELETE', '/v2/mcp/a'],
    ['TRACE', '/health'],
    ['PROPFIND', '/health'],
  ])('D2-15: %s %s is not registered', async (method, path) => {
    const answer = await sendRaw(p.url, request(method, path, { Authorization: `Bearer ${token}` }));
    expect([400, 404]).toContain(answer.status);
    if (method === method.toUpperCase()) expect(answer.status).toBe(404);
  });

  it.each(['/health', '/v1/health', '/v2/health'])('D2-15: HEAD %s answers as GET, without a body', async (path) => {
    const answer = await p.call('HEAD', path);
    expect(answer.status).toBe(200);
    expect(answer.text).toBe('');
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
  });
});

it.each([
  ['/one/x', '/one/*'],
  ['/one/x/y', undefined],
  ['/one', undefined],
  ['/rest/x', '/rest/**'],
  ['/rest/x/y', '/rest/**'],
  ['/rest/{id}/x', '/rest/**'],
  ['/rest/literal', '/rest/literal'],
  ['/rest/literal/y', '/rest/**'],
])('D2-15: of `*`, which is one segment, and `**`, which is any rest, %s is matched by %s', (path, expected) => {
  const table = new EndpointTable(
    ['/one/*', '/rest/**', '/rest/literal'].map((written) => ({ methods: ['GET'], path: written }) as Endpoint),
  );
  expect(table.match('GET', path)?.path).toBe(expected);
});

/** Path, X-Target-Server, and whether the endpoint is found. */
const targets: [string, string | undefined, boolean][] = [
  ['/v1/accounts', undefined, true],
  ['/v1/accounts', '', true],
  ['/v1/accounts', 'accounts', true],
  ['/v1/accounts', ' accounts ', true],
  ['/v1/accounts', 'wallets', false],
  ['/v1/accounts', 'integration', false],
  ['/v1/accounts', 'Accounts', false],
  ['/v1/accounts', 'unknown', false],
  ['/v1/accounts', 'accounts, accounts', false],
  ['/v1/accounts', '__proto__', false],
  ['/v1/accounts', 'constructor', false],
  ['/health', undefined, true],
  ['/health', 'accounts', true],
  ['/health', 'wallet-rules', true],
  ['/health', 'notification', true],
  ['/health', 'unknown', false],
  ['/v2/blockchain/gas-fee', 'wallets', true],
  ['/v2/admin/tokens/00000000-0000-4000-8000-000000000000', 'accounts', false],
];

describe('X-Target-Server', () => {
  it.each(targets)('1-10 1-11 D2-15: %s for %s is found: %s', async (path, target, found) => {
    const headers: Record<string, string> = target === undefined ? {} : { 'x-target-server': target };
    const answer = await p.call('GET', path, { token, headers });
    expect(answer.text === envelope('not_found')).toBe(!found);
  });

  it.each(['integration', 'notification'])('1-11: the webhook stands under %s', async (target) => {
    const answer = await p.call('POST', '/v2/webhooks/custodial', { headers: { 'x-target-server': target } });
    expect(answer.status).toBe(401);
  });

  it.each(['wallets', 'unknown'])('D2-03: %s is refused before any token is judged', async (target) => {
    const answer = await p.call('GET', '/v1/accounts', { token: 'broken', headers: { 'x-target-server': target } });
    expect(answer.status).toBe(404);
    expect(answer.text).toBe(envelope('not_found'));
    expect(answer.headers.get('www-authenticate')).toBeNull();
  });
});

describe('public endpoints', () => {
  it.each(['Bearer broken', 'Bearer', 'Basic x', 'nonsense', ''])(
    '1-02: ignore the header "%s"',
    async (authorization) => {
      const health = await p.call('GET', '/health', { headers: { authorization } });
      const preflight = await p.call('OPTIONS', '/v1/accounts', { headers: { authorization } });
      expect([health.status, preflight.status]).toEqual([200, 204]);
    },
  );

  it('1-02: the token endpoint ignores an expired bearer', async () => {
    const json = { grant_type: 'client_credentials', ...p.demo.client };
    const answer = await p.call('POST', '/v2/oauth/token', { json, token: 'eyJhbGciOiJub25lIn0.e30.' });
    expect(answer.status).toBe(200);
  });
});

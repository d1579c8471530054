import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Endpoint } from '../../src/gateway/endpoints/gateway-config.ts';
import { EndpointTable } from '../../src/gateway/routing.ts';
import { envelope } from '../support/gateway/envelopes.ts';
import { type Portcullis, startPortcullis } from '../support/harness.ts';

let p: Portcullis;
let token: string;
beforeAll(async () => {
  p = await startPortcullis();
  token = await p.clientToken();
});
afterAll(() => p[Symbol.asyncDispose]());

describe('matching', () => {
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
  ['/v1/accounts', 'wallets', false],
  ['/v1/accounts', 'Accounts', false],
  ['/v1/accounts', 'unknown', false],
  ['/v1/accounts', 'accounts, accounts', false],
  ['/v1/accounts', 'constructor', false],
  ['/health', undefined, true],
  ['/health', 'accounts', true],
  ['/health', 'unknown', false],
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

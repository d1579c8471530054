import { setTimeout as sleep } from 'node:timers/promises';
import type { Upstream } from './instance.ts';
import type { Recorder } from './recorder.ts';
import { RULES } from './rest-cases.ts';
import { DEMO, forged, NOBODY } from './values.ts';

export const EVERY = 'accounts:read wallets:write wallet-rules:write users:migrate tokens:read';

/** What a gateway answers whose services are processes of their own, those that answer and those that are away. */
export async function remoteCases(r: Recorder, upstream: Upstream): Promise<void> {
  const token = forged({ scope: EVERY });
  const routes: [method: string, path: string][] = [
    ['POST', '/v2/oauth/token'],
    ['POST', '/v2/oauth/revoke'],
    ['POST', '/v2/oauth/introspect'],
    ['GET', '/.well-known/oauth-authorization-server'],
    ['POST', RULES],
    ['PUT', `${RULES}/${NOBODY}`],
    ['POST', `/v1/wallets/${DEMO.wallet_id}/networks/${DEMO.network_id}`],
    ['POST', '/v2/webhooks/custodial'],
    ['POST', '/v2/webhooks'],
    ['POST', '/v2/users/migrate/with-wallet'],
    ['POST', '/v2/users/migrate/with-wallet/bulk'],
    ['GET', `/v2/admin/tokens/${DEMO.asset_id}`],
    ['POST', '/v2/mcp'],
    ['GET', '/v2/mcp'],
    ['DELETE', '/v2/mcp'],
    ['POST', '/v2/mcp/x'],
    ['GET', '/v2/mcp/x'],
    ['POST', '/graphql'],
    ['GET', '/health'],
    ['GET', '/swagger/'],
  ];
  const headers: Record<string, Record<string, string | string[]>> = {
    nothing: {},
    'a correlation id': { 'x-correlation-id': 'my-id' },
    'a proxy before': { 'x-forwarded-for': '203.0.113.9', 'x-forwarded-proto': 'https' },
    'hop-by-hop headers': { connection: 'x-own', 'x-own': '1', te: 'trailers', 'keep-alive': 'timeout=5' },
    'a cookie': { cookie: 'a=b', 'x-twice': ['1', '2'] },
    ...Object.fromEntries(
      [201, 204, 304, 400, 404, 413, 500, 503].map((status) => [`a ${status}`, { 'x-answer-status': String(status) }]),
    ),
  };
  for (const [what, given] of Object.entries(headers)) {
    await r.call(`accounts with ${what}`, 'GET', '/v1/accounts?limit=1&token=secret', { token, headers: given });
  }
  await r.call('accounts without a token', 'GET', '/v1/accounts');
  await r.call('accounts with a broken token', 'GET', '/v1/accounts', { token: 'x' });
  await r.call('accounts without permission', 'GET', '/v1/accounts', { token: forged({ scope: 'none' }) });
  await r.call('accounts for another service', 'GET', '/v1/accounts', {
    token,
    headers: { 'x-target-server': 'wallets' },
  });
  for (const status of [undefined, '500']) {
    await every(`with ${status ?? 'nothing'}`, status === undefined ? {} : { 'x-answer-status': status });
  }
  upstream[Symbol.dispose]();
  await sleep(200);
  // At first each is tried; once too many have failed none is.
  for (let turn = 1; turn <= 6; turn += 1) await every(`away ${turn}`, {});

  async function every(what: string, given: Record<string, string>): Promise<void> {
    for (const [method, path] of routes) {
      const json = method === 'POST' || method === 'PUT' ? { json: { a: 1 } } : {};
      await r.call(`${method} ${path} ${what}`, method, path, { token, headers: given, ...json });
    }
  }
}

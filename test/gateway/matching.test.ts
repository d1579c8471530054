import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Endpoint, readGatewayConfig } from '../../src/gateway/endpoints/gateway-config.ts';
import { PathTable } from '../../src/gateway/routing.ts';
import { DOCUMENTED } from '../support/gateway/documented.ts';
import { envelope } from '../support/gateway/envelopes.ts';
import { goodRoutes } from '../support/gateway/good-routes.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { startPortcullis } from '../support/harness.ts';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];
const file = join(import.meta.dirname, '../../gateway.yaml');
const { endpoints } = readGatewayConfig(file);

const p = beforeTests(() => startPortcullis({ env: { CONSOLE: 'on' } }));
let token: string;
beforeAll(async () => {
  token = await p.clientToken();
});

describe('route matching', () => {
  it.each(['/health', '/v1/health', '/v2/health'])(
    'D2-15: HEAD %s answers as GET does, without a body',
    async (path) => {
      const answer = await p.call('HEAD', path);
      expect(answer.status).toBe(200);
      expect(answer.text).toBe('');
      expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
    },
  );
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
])('D2-15: `*` matches one segment and `**` any rest: %s is matched by %s', (path, expected) => {
  const table = new PathTable(
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
  it.each(targets)('1-10 1-11 D2-15: %s with the value %s is found: %s', async (path, target, found) => {
    const headers: Record<string, string> = target === undefined ? {} : { 'x-target-server': target };
    const answer = await p.call('GET', path, { token, headers });
    expect(answer.text === envelope('not_found')).toBe(!found);
  });

  it.each(['integration', 'notification'])('1-11: the webhook is found under the service %s', async (target) => {
    const answer = await p.call('POST', '/v2/webhooks/custodial', { headers: { 'x-target-server': target } });
    expect(answer.status).toBe(401);
  });

  it.each(['wallets', 'unknown'])(
    'D2-03: a request for the service %s is rejected before its token is checked',
    async (target) => {
      const answer = await p.call('GET', '/v1/accounts', { token: 'broken', headers: { 'x-target-server': target } });
      expect(answer.status).toBe(404);
      expect(answer.text).toBe(envelope('not_found'));
      expect(answer.headers.get('www-authenticate')).toBeNull();
    },
  );
});

function rowsOf({ methods, path, services, visibility, permissions }: Endpoint) {
  return methods.map((method) => [method, path, services, visibility, permissions]);
}

describe('gateway.yaml', () => {
  it('D2-01 9-01: has every documented route with its services and permissions, and no other', () => {
    const sorted = (rows: unknown[][]) => rows.map((row) => JSON.stringify(row)).sort();
    expect(sorted(endpoints.flatMap(rowsOf))).toEqual(sorted([...DOCUMENTED]));
  });

  it('1-08: only the routes of tokens, sessions and exports keep their bodies out of the record', () => {
    const kept = endpoints.filter((endpoint) => endpoint.doNotLog).map((endpoint) => endpoint.path);
    expect(kept).toEqual([
      '/v2/oauth/token',
      '/v2/oauth/revoke',
      '/v2/oauth/introspect',
      '/console/session',
      '/console/session/renew',
      '/graphql/audit-exports/{id}/{key}',
    ]);
  });

  it('1-11: the services are the documented ones', () => {
    const services = Object.keys(readGatewayConfig(file).services);
    expect(services.sort()).toEqual(['accounts', 'integration', 'notification', 'wallet-rules', 'wallets']);
  });

  it('5.1-03 5.1-04: every protected endpoint accepts user and legacy tokens, and none accepts discover tokens', () => {
    expect(new Set(endpoints.map((endpoint) => endpoint.tokens.join()))).toEqual(new Set(['user,legacy']));
  });

  it('D2-01: names its schema for editors', () => {
    expect(readFileSync(file, 'utf8')).toMatch(/^# yaml-language-server: \$schema=/);
  });
});

describe('the handlers behind the gateway', () => {
  it('D2-01 1-03 7.6-01: a method that is not registered for a path is a 404, even if a handler would accept it', async () => {
    const targets = Object.entries(await goodRoutes(p)).map(([route, { request }]) => {
      const [method = ''] = route.split(' ');
      return { method, path: request().target.replace(/\?.*/, '') };
    });
    const registered = new Set(targets.map(({ method, path }) => `${method} ${path}`));
    const paths = new Set(targets.map(({ path }) => path));
    for (const path of paths) {
      for (const method of METHODS) {
        if (registered.has(`${method} ${path}`)) continue;
        const answer = await p.call(method, path, { token });
        expect([method, path, answer.status]).toEqual([method, path, 404]);
        if (method !== 'HEAD') expect(answer.text).toBe(envelope('not_found'));
      }
    }
  });

  it.each(['/metrics', '/livez', '/readyz', '/', '/favicon.ico', '/v1', '/v1/discovers/x', '/v3/accounts', '/admin'])(
    'D2-01 D2-12 7.6-01: %s is not reachable',
    async (path) => {
      const answer = await p.call('GET', path, { token });
      expect(answer.status).toBe(404);
      expect(answer.text).toBe(envelope('not_found'));
    },
  );
});

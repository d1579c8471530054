import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Endpoint, readGatewayConfig } from '../../src/gateway/endpoints/gateway-config.ts';
import { DOCUMENTED } from '../support/gateway/documented.ts';
import { envelope } from '../support/gateway/envelopes.ts';
import { goodRoutes } from '../support/gateway/good-routes.ts';
import { type Portcullis, startPortcullis } from '../support/harness.ts';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];
const file = join(import.meta.dirname, '../../gateway.yaml');
const { endpoints } = readGatewayConfig(file);

let p: Portcullis;
let token: string;

beforeAll(async () => {
  p = await startPortcullis({ env: { CONSOLE: 'on' } });
  token = await p.clientToken();
});
afterAll(() => p[Symbol.asyncDispose]());

function rowsOf({ methods, path, services, visibility, permissions }: Endpoint) {
  return methods.map((method) => [method, path, services, visibility, permissions]);
}

describe('gateway.yaml', () => {
  it('D2-01 9-01: it has every documented route with its services and permissions, and no other', () => {
    const sorted = (rows: unknown[][]) => rows.map((row) => JSON.stringify(row)).sort();
    expect(sorted(endpoints.flatMap(rowsOf))).toEqual(sorted([...DOCUMENTED]));
  });

  it('1-08: the token routes alone keep their bodies out of the record', () => {
    const kept = endpoints.filter((endpoint) => endpoint.doNotLog).map((endpoint) => endpoint.path);
    expect(kept).toEqual(['/v2/oauth/token', '/v2/oauth/revoke', '/v2/oauth/introspect']);
  });

  it('1-11: the services are the documented ones', () => {
    const services = Object.keys(readGatewayConfig(file).services);
    expect(services.sort()).toEqual(['accounts', 'integration', 'notification', 'wallet-rules', 'wallets']);
  });

  it('5.1-03 5.1-04: every protected endpoint takes user and legacy tokens, none takes discover tokens', () => {
    expect(new Set(endpoints.map((endpoint) => endpoint.tokens.join()))).toEqual(new Set(['user,legacy']));
  });

  it('D2-01: names its schema for editors', () => {
    expect(readFileSync(file, 'utf8')).toMatch(/^# yaml-language-server: \$schema=/);
  });
});

describe('the handlers behind the gateway', () => {
  it('D2-01 1-03 7.6-01: a method that is not registered for a path is a 404, though a handler may take it', async () => {
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

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { reaches } from '../../src/api/rest/route.ts';
import { unlistedRoutes, unservedEndpoints } from '../../src/app/public-server.ts';
import { ROUTES } from '../../src/app/routes.ts';
import {
  type GatewayConfig,
  parseGatewayConfig,
  readGatewayConfig,
} from '../../src/gateway/endpoints/gateway-config.ts';
import { type Log, silentLog } from '../../src/lib/log.ts';
import { sourceFiles } from '../support/architecture/imports.ts';
import { gatewayFile } from '../support/gateway/gateway-file.ts';
import { startPortcullis } from '../support/harness.ts';
import { ROOT } from '../support/start/process.ts';

const shipped = readGatewayConfig(join(ROOT, 'gateway.yaml'));

describe('the shipped gateway.yaml and the routes', () => {
  it('have the same methods and paths, and preflights are answered beside the routes', () => {
    const registered = shipped.endpoints.flatMap(({ methods, path }) => methods.map((method) => `${method} ${path}`));
    const declared = ROUTES.map(({ method, path }) => `${method} ${path}`);
    expect([...declared, 'OPTIONS **'].sort()).toEqual(registered.sort());
    expect(unservedEndpoints(shipped, ROUTES)).toEqual([]);
    expect(unlistedRoutes(shipped, ROUTES)).toEqual([]);
  });

  it('a table without some of them is told which', () => {
    const older = { ...shipped, endpoints: shipped.endpoints.filter(({ path }) => !path.startsWith('/console')) };
    expect(unlistedRoutes(older, ROUTES)).toEqual(
      expect.arrayContaining(['GET /console', 'GET /console/**', 'POST /console/session']),
    );
  });

  it('lead each endpoint to the one route of its method and path', () => {
    for (const { methods, path } of shipped.endpoints) {
      for (const method of methods.filter((name) => name !== 'OPTIONS')) {
        const reached = ROUTES.filter((route) => reaches(method, path, route)).map((route) => route.path);
        // HEAD is served by the route of GET, or by its own.
        expect([method, path, [...new Set(reached)]]).toEqual([method, path, [path]]);
      }
    }
  });
});

/** The fault lines of a table with one endpoint, on services of which one is remote. */
function unserved(endpoint: string): string[] {
  const config: GatewayConfig = parseGatewayConfig(
    'gateway.yaml',
    [
      'services: { here: local, away: "http://away" }',
      'webhook_alias: { deprecated_at: 2026-11-01T00:00:00Z, sunset: 2027-11-01T00:00:00Z }',
      `endpoints: [{ ${endpoint} }]`,
    ].join('\n'),
  );
  return unservedEndpoints(config, ROUTES);
}

describe('an endpoint of a local service', () => {
  it.each([
    ['of a path that no route has', 'methods: [GET, POST], path: /v1/things, services: [here]', 'GET /v1/things'],
    ['of no service', 'methods: [GET], path: /v1/things', 'GET /v1/things'],
    ['of a local and a remote service', 'methods: [GET], path: /v1/things, services: [away, here]', 'GET /v1/things'],
    ['of a method that no route has', 'methods: [PATCH], path: /v1/accounts, services: [here]', 'PATCH /v1/accounts'],
    ['of another length', "methods: [GET], path: '/v1/accounts/*', services: [here]", 'GET /v1/accounts/*'],
  ])('is found to have no route: %s', (_name, endpoint, first) => {
    expect(unserved(endpoint)[0]).toBe(first);
  });

  it.each([
    ['another name of a parameter', "methods: [PUT], path: '/v1/wallets/{wallet}/rules/{rule}', services: [here]"],
    ['HEAD of a route of GET', 'methods: [HEAD], path: /v1/accounts, services: [here]'],
    ['a pattern of several routes', "methods: [GET], path: '/v1/**', services: [here]"],
    ['one segment of a pattern', "methods: [GET], path: '/swagger/{name}', services: [here]"],
    ['a remote service', 'methods: [GET], path: /v1/things, services: [away]'],
    ['a preflight', 'methods: [OPTIONS], path: /v1/things, services: [here]'],
  ])('is served: %s', (_name, endpoint) => {
    expect(unserved(endpoint)).toEqual([]);
  });
});

describe('a table with endpoints that no route serves', () => {
  const disposables = new AsyncDisposableStack();
  afterEach(() => disposables.disposeAsync());

  it('is taken and told of in the log; they answer 503, and a pattern of several routes answers as those do', async () => {
    const warnings: { fields: object; message: string }[] = [];
    const log: Log = {
      ...silentLog,
      warn: (fields, message) => {
        warnings.push({ fields, message });
      },
    };
    const open = { services: ['integration'], visibility: 'public' };
    const file = disposables.use(
      await gatewayFile({}, [
        { methods: ['GET', 'PUT'], path: '/v1/things', ...open },
        { methods: ['GET'], path: '/{version}/health', ...open },
      ]),
    );
    const p = disposables.use(await startPortcullis({ env: { GATEWAY_CONFIG: file.path }, overrides: { log } }));
    expect(warnings).toContainEqual({
      fields: { endpoints: ['GET /v1/things', 'PUT /v1/things'], endpoint_count: 2 },
      message: 'endpoints of local services without a route; they return 503',
    });
    const statuses = await Promise.all(
      ['/v1/things', '/v2/health', '/v3/health'].map(async (path) => (await p.call('GET', path)).status),
    );
    expect(statuses).toEqual([503, 200, 503]);
  });
});

describe('a path', () => {
  const sources = sourceFiles().map((file) => ({ file, text: readFileSync(join(ROOT, 'src', file), 'utf8') }));

  it.each([...new Set(ROUTES.map(({ path }) => path))])('stands in one file of src: %s', (path) => {
    // As a text of the code, whole or behind an origin: comments and prose may speak of it.
    const base = path.replace(/\/\*+$/, '');
    const naming = sources.filter(({ text }) =>
      [`'${base}`, `}${base}`].some((start) => text.split(start).some((rest, at) => at > 0 && /^['`*/?]/.test(rest))),
    );
    expect(naming.length).toBeLessThanOrEqual(1);
    for (const { file } of naming) expect(file).toMatch(/^(?:api\/rest|features\/[a-z-]+)\/[a-z-]+\.rest\.ts$/);
  });
});

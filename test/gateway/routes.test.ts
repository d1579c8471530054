import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { type Route, restApplication } from '../../src/api/rest/route.ts';
import { ROUTES } from '../../src/app/routes.ts';
import { readGatewayConfig } from '../../src/gateway/endpoints/gateway-config.ts';
import { parametersOf } from '../../src/gateway/routing.ts';
import { silentLog } from '../../src/lib/log.ts';
import { sourceFiles } from '../support/architecture/imports.ts';
import { gatewayFile } from '../support/gateway/gateway-file.ts';
import { startPortcullis } from '../support/harness.ts';
import { ROOT } from '../support/start/process.ts';

const shipped = readGatewayConfig(join(ROOT, 'gateway.yaml'));

/** Returns what finds the routes with these methods and paths. */
function tableOf(declared: readonly Pick<Route<object>, 'method' | 'path'>[]) {
  const handlers = () => [() => undefined];
  return restApplication(
    declared.map(({ method, path }) => ({ method, path, handlers })),
    {},
    silentLog,
  ).routes;
}

describe('the shipped gateway.yaml and the routes', () => {
  it('have the same methods and paths, except preflights', () => {
    const registered = shipped.endpoints.flatMap(({ methods, path }) => methods.map((method) => `${method} ${path}`));
    const declared = ROUTES.map(({ method, path }) => `${method} ${path}`);
    expect([...declared, 'OPTIONS **'].sort()).toEqual(registered.sort());
  });

  it('match each endpoint to the route of its method and path', () => {
    const table = tableOf(ROUTES);
    for (const { methods, path } of shipped.endpoints) {
      for (const method of methods.filter((name) => name !== 'OPTIONS'))
        expect([method, path, table.match(method, path)?.path]).toEqual([method, path, path]);
    }
  });
});

describe('a request', () => {
  const table = tableOf([
    { method: 'GET', path: '/things' },
    { method: 'POST', path: '/things' },
    { method: 'GET', path: '/things/{thing_id}' },
    { method: 'PUT', path: '/things/{thing_id}' },
    { method: 'GET', path: '/things/summary' },
    { method: 'PUT', path: '/things/{thing_id}/parts/{id}' },
    { method: 'GET', path: '/page/*' },
    { method: 'GET', path: '/files/**' },
  ]);

  it.each([
    ['GET', '/things', '/things', {}],
    ['HEAD', '/things', '/things', {}],
    ['POST', '/things', '/things', {}],
    ['GET', '/things/summary', '/things/summary', {}],
    ['GET', '/things/1', '/things/{thing_id}', { thing_id: '1' }],
    ['PUT', '/things/summary', '/things/{thing_id}', { thing_id: 'summary' }],
    ['GET', '/things/a%20b%3F', '/things/{thing_id}', { thing_id: 'a b?' }],
    ['GET', '/things/%E2%82%AC', '/things/{thing_id}', { thing_id: '€' }],
    ['GET', '/things/{thing_id}', '/things/{thing_id}', { thing_id: '{thing_id}' }],
    ['PUT', '/things/1/parts/__proto__', '/things/{thing_id}/parts/{id}', { thing_id: '1', id: '__proto__' }],
    ['GET', '/page/', '/page/*', { rest: '' }],
    ['GET', '/page/a.css', '/page/*', { rest: 'a.css' }],
    ['GET', '/files/', '/files/**', { rest: '' }],
    ['HEAD', '/files/a/%C3%A4.js', '/files/**', { rest: 'a/ä.js' }],
  ])('D2-15: %s %s has the route %s with its parameters', (method, path, pattern, parameters) => {
    expect(table.match(method, path)?.path).toBe(pattern);
    expect(parametersOf(pattern, path)).toEqual(parameters);
  });

  it.each([
    ['another method', 'DELETE', '/things'],
    ['HEAD of a route with only POST', 'HEAD', '/things/1/parts/2'],
    ['OPTIONS', 'OPTIONS', '/things'],
    ['letters of another case', 'GET', '/Things'],
    ['a method of another case', 'get', '/things'],
    ['a trailing slash', 'GET', '/things/'],
    ['an empty parameter', 'PUT', '/things//parts/1'],
    ['a shorter path', 'GET', '/page'],
    ['a longer path', 'GET', '/page/a/b'],
    ['the name of a member of every object', 'GET', '/constructor'],
  ])('D2-15: %s has no route: %s %s', (_name, method, path) => {
    expect(table.match(method, path)).toBeUndefined();
  });
});

describe('an endpoint whose pattern is broader than its routes', () => {
  const disposables = new AsyncDisposableStack();
  afterEach(() => disposables.disposeAsync());

  it('passes requests to the route of their path, with its limits and error body, or answers 503', async () => {
    const open = { services: ['integration'], visibility: 'public' };
    const file = disposables.use(
      await gatewayFile({}, [
        { methods: ['GET', 'PUT'], path: '/v1/things', ...open },
        { methods: ['GET'], path: '/{version}/health', ...open },
        { methods: ['GET', 'HEAD', 'POST'], path: '/v2/**', ...open },
        { methods: ['POST'], path: '/v2/oauth/{operation}', ...open },
      ]),
    );
    const p = disposables.use(await startPortcullis({ env: { GATEWAY_CONFIG: file.path } }));
    const statusOf = async (request: string) => {
      const [method = '', path = ''] = request.split(' ');
      return [request, (await p.call(method, path)).status];
    };
    const statuses = [
      ['GET /v1/things', 503],
      ['PUT /v1/things', 503],
      ['GET /v3/health', 503],
      ['GET /v2/health', 200],
      ['GET /v2/blockchain/gas-fee', 200],
      ['HEAD /v2/blockchain/gas-fee', 200],
      ['GET /v2/blockchain/gas%2Dfee', 200],
      ['GET /v2/blockchain/gas-fee/', 503],
      ['GET /v2/Blockchain/gas-fee', 503],
      ['POST /v2/blockchain/gas-fee', 503],
      ['OPTIONS /v2/blockchain/gas-fee', 204],
    ] as const;
    expect(await Promise.all(statuses.map(([request]) => statusOf(request)))).toEqual(statuses);
  });
});

describe('a route path', () => {
  const sources = sourceFiles().map((file) => ({ file, text: readFileSync(join(ROOT, 'src', file), 'utf8') }));

  it.each([...new Set(ROUTES.map(({ path }) => path))])('is written in one file of src: %s', (path) => {
    // As a text of the code, whole or behind an origin: comments and prose may speak of it.
    const base = path.replace(/\/\*+$/, '');
    const naming = sources.filter(({ text }) =>
      [`'${base}`, `}${base}`].some((start) => text.split(start).some((rest, at) => at > 0 && /^['`*/?]/.test(rest))),
    );
    expect(naming.length).toBeLessThanOrEqual(1);
    for (const { file } of naming) expect(file).toMatch(/^(?:api\/rest|features\/[a-z-]+)\/[a-z-]+\.rest\.ts$/);
  });
});

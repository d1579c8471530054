import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { envelope } from '../support/gateway/envelopes.ts';
import { type Forwarder, startForwarder, startUpstream, type TestUpstream } from '../support/gateway/forwarder.ts';
import { gatewayFile } from '../support/gateway/gateway-file.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { startPortcullis } from '../support/harness.ts';
import { apiClaims, signed } from '../support/oauth/jwt.ts';

/** Of each service an endpoint, and some of several and of none. */
const endpoints = [
  { methods: ['GET'], path: '/a', services: ['a'] },
  { methods: ['GET'], path: '/b', services: ['b'] },
  { methods: ['GET'], path: '/here', services: ['here'] },
  { methods: ['GET'], path: '/ab', services: ['a', 'b'] },
  { methods: ['GET'], path: '/a-here', services: ['a', 'here'] },
  { methods: ['GET'], path: '/none' },
];

let a: TestUpstream;
let b: TestUpstream;
let open: Forwarder;
let bound: Forwarder;

beforeAll(async () => {
  a = await startUpstream((_req, res) => res.end('a'));
  b = await startUpstream((_req, res) => res.end('b'));
  const services = { a: a.url, b: { at: b.url }, here: 'local' };
  open = await startForwarder({ services, endpoints });
  bound = await startForwarder({ services, endpoints, binding: ['b', 'here'] });
});
afterAll(async () => {
  for (const started of [open, bound, a, b]) await started[Symbol.asyncDispose]();
});

/** Who answers by default, and where the binding is of two services; undefined: a 404. */
const rows: [path: string, target: string | undefined, answers: string | undefined, bound: string | undefined][] = [
  ['/a', undefined, 'a', undefined],
  ['/a', '', 'a', undefined],
  ['/a', 'a', 'a', 'a'],
  ['/a', 'b', undefined, undefined],
  ['/a', 'here', undefined, undefined],
  ['/b', undefined, 'b', 'b'],
  ['/here', undefined, 'local here', 'local here'],
  ['/here', 'a', undefined, undefined],
  ['/ab', undefined, 'a', 'b'],
  ['/ab', 'a', 'a', 'a'],
  ['/ab', 'b', 'b', 'b'],
  ['/a-here', undefined, 'local here', 'local here'],
  ['/a-here', 'a', 'a', 'a'],
  ['/none', undefined, 'local undefined', 'local undefined'],
  ['/none', 'here', 'local undefined', 'local undefined'],
  ['/none', 'unknown', undefined, undefined],
];

describe('X-Target-Server with remote services', () => {
  it.each(rows)(
    '1-10 D2-15: %s with the header %s is answered by %s, and with a binding by %s',
    async (path, target, ...answers) => {
      const headers: Record<string, string> = target === undefined ? {} : { 'x-target-server': target };
      for (const [index, f] of [open, bound].entries()) {
        const got = await fetch(`${f.url}${path}`, { headers });
        const answered = got.status === 404 ? undefined : await got.text();
        if (got.status === 404) expect(await got.text()).toBe(envelope('not_found'));
        expect(answered).toBe(answers[index]);
      }
    },
  );

  it('D2-10: the header is forwarded to the upstream, which may have services of its own', async () => {
    await fetch(`${open.url}/ab`, { headers: { 'x-target-server': 'b' } });
    expect(b.seen.at(-1)?.headers).toMatchObject({ 'x-target-server': 'b' });
  });
});

/** Which tokens an endpoint accepts is proven in token-matrix.test.ts. */
describe('/v1/discovers/**', () => {
  const upstream = beforeTests(() =>
    startUpstream((req, res) => res.writeHead(200, { 'x-method': req.method ?? '' }).end(req.url)),
  );
  const p = beforeTests(() => startPortcullis({ env: { DISCOVERS_UPSTREAM_URL: `${upstream.url}/mesh` } }));

  const discoverToken = () => {
    const claims = apiClaims(p, { token_use: undefined, client_id: undefined, sub: 'node-7' });
    return signed(p, claims, { secret: p.service.context.secrets.jwt.discover.current });
  };

  it.each(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])(
    'D8-05 5.1-02: %s is forwarded with a discover token',
    async (method) => {
      const got = await p.call(method, '/v1/discovers/nodes/7?all=1', { token: discoverToken() });
      expect([got.status, got.text, got.headers.get('x-method')]).toEqual([
        200,
        '/mesh/v1/discovers/nodes/7?all=1',
        method,
      ]);
      expect(upstream.seen.at(-1)?.headers.authorization).toMatch(/^Bearer ey/);
    },
  );

  it('D8-05: belongs to the service integration', async () => {
    const call = (target: string) =>
      p.call('GET', '/v1/discovers/x', { token: discoverToken(), headers: { 'x-target-server': target } });
    expect((await call('integration')).status).toBe(200);
    for (const target of ['accounts', 'discovers', '/v1/discovers']) expect((await call(target)).status).toBe(404);
  });

  it('D8-05 D2-15: HEAD and the bare path are not registered', async () => {
    expect((await p.call('HEAD', '/v1/discovers/x', { token: discoverToken() })).status).toBe(404);
    expect((await p.call('GET', '/v1/discovers', { token: discoverToken() })).status).toBe(404);
  });
});

describe('a service moved to another process', () => {
  it('D2-02: is not reached by requests that the gateway rejects', async () => {
    await using upstream = await startUpstream((_req, res) => res.end('moved'));
    await using file = await gatewayFile({ accounts: upstream.url });
    await using p = await startPortcullis({ env: { GATEWAY_CONFIG: file.path } });
    const powerless = signed(p, apiClaims(p, { scope: 'tokens:read' }));
    const statuses = [
      (await p.call('GET', '/v1/accounts/')).status,
      (await p.call('GET', '/v1/accounts')).status,
      (await p.call('GET', '/v1/accounts', { token: 'x.y.z' })).status,
      (await p.call('GET', '/v1/accounts', { token: powerless })).status,
    ];
    expect([statuses, upstream.seen.length]).toEqual([[404, 401, 401, 403], 0]);
    const got = await p.call('GET', '/v1/accounts', { token: await p.clientToken() });
    expect([got.text, upstream.seen.length]).toEqual(['moved', 1]);
    const metrics = await (await fetch(`${p.service.adminUrl}/metrics`)).text();
    expect(metrics).toContain('portcullis_upstream_requests_total{service="accounts",outcome="answered"} 1');
    expect(metrics).toContain('portcullis_upstream_circuit_closed{service="accounts"} 1');
  });
});

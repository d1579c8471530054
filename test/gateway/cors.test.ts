import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Portcullis, startPortcullis } from '../harness.ts';
import { request, sendRaw } from './raw.ts';

const EXPOSED = [
  'x-correlation-id',
  'www-authenticate',
  'retry-after',
  'location',
  'etag',
  ...['limit', 'remaining', 'reset'].flatMap((name) =>
    ['', '-second', '-minute', '-hour'].map((window) => `x-ratelimit-${name}${window}`),
  ),
  'x-monthlylimit-limit',
  'x-monthlylimit-remaining',
  'x-monthlylimit-reset',
];
const REQUESTED = [
  'authorization',
  'content-type',
  'x-target-server',
  'x-correlation-id',
  'idempotency-key',
  'if-match',
  'mcp-session-id',
  'mcp-protocol-version',
  'last-event-id',
];

let p: Portcullis;
beforeAll(async () => {
  p = await startPortcullis();
});
afterAll(() => p[Symbol.asyncDispose]());

function names(header: string | null | undefined): string[] {
  return (header ?? '').split(',').map((name) => name.trim().toLowerCase());
}

describe('CORS', () => {
  it.each(['/v1/accounts', '/v2/oauth/token', '/graphql', '/health', '/nowhere/at/all', '/', '/v2/mcp/x'])(
    '4.9-02 D1-06: a preflight for %s is a 204 without a token, and allows the headers in use by name',
    async (path) => {
      const answer = await p.call('OPTIONS', path, {
        headers: {
          origin: 'https://dashboard.example',
          'access-control-request-method': 'POST',
          'access-control-request-headers': 'authorization,x-target-server',
        },
      });
      expect(answer.status).toBe(204);
      expect(answer.text).toBe('');
      expect(answer.headers.get('access-control-allow-origin')).toBe('*');
      expect(answer.headers.get('access-control-allow-credentials')).toBeNull();
      expect(names(answer.headers.get('access-control-allow-headers')).sort()).toEqual([...REQUESTED].sort());
      const methods = names(answer.headers.get('access-control-allow-methods'));
      for (const method of ['get', 'post', 'put', 'delete']) expect(methods).toContain(method);
      expect(names(answer.headers.get('access-control-expose-headers')).sort()).toEqual([...EXPOSED].sort());
    },
  );

  it('4.9-02: OPTIONS is a 204 without any header of a preflight too', async () => {
    expect((await p.call('OPTIONS', '/v1/accounts')).status).toBe(204);
  });

  it.each([
    [200, 'GET', '/health'],
    [204, 'OPTIONS', '/v1/accounts'],
    [401, 'GET', '/v1/accounts'],
    [404, 'GET', '/nowhere'],
  ])('D1-06: a %i (%s %s) to a request without an origin has none of them, and varies by it', async (...row) => {
    const [status, method, path] = row;
    const answer = await p.call(method, path);
    expect(answer.status).toBe(status);
    expect([...answer.headers.keys()].filter((name) => name.startsWith('access-control-'))).toEqual([]);
    expect(answer.headers.get('vary')).toBe('Origin');
  });

  it.each([
    [200, 'GET', '/health'],
    [400, 'POST', '/v2/oauth/token'],
    [401, 'GET', '/v1/accounts'],
    [401, 'POST', '/v2/webhooks'],
    [404, 'GET', '/nowhere'],
  ])('D1-06: a %i (%s %s) has the same headers', async (status, method, path) => {
    const answer = await p.call(method, path, { headers: { origin: 'https://dashboard.example' } });
    expect(answer.status).toBe(status);
    expect(answer.headers.get('access-control-allow-origin')).toBe('*');
    expect(answer.headers.get('access-control-allow-credentials')).toBeNull();
    expect(answer.headers.get('vary')).toBe('Origin');
    expect(names(answer.headers.get('access-control-expose-headers')).sort()).toEqual([...EXPOSED].sort());
  });

  it('D1-06: a refused upgrade has them as well', async () => {
    const upgrade = {
      Connection: 'Upgrade',
      Upgrade: 'websocket',
      'Sec-WebSocket-Key': 'x',
      'Sec-WebSocket-Version': '13',
      Origin: 'https://dashboard.example',
    };
    const answer = await sendRaw(p.url, request('GET', '/v1/accounts', upgrade));
    expect(answer.status).toBe(401);
    expect(answer.headers['access-control-allow-origin']).toBe('*');
    expect(answer.headers['x-correlation-id']).toBeDefined();
  });
});

import { describe, expect, it } from 'vitest';
import { request, sendRaw } from '../support/gateway/raw.ts';
import { startPortcullis, usePortcullis } from '../support/harness.ts';

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
const p = usePortcullis();

function names(header: string | null | undefined): string[] {
  return (header ?? '').split(',').map((name) => name.trim().toLowerCase());
}

describe('CORS', () => {
  it.each(['/v1/accounts', '/v2/oauth/token', '/graphql', '/health', '/nowhere/at/all', '/', '/v2/mcp/x'])(
    '4.9-02 D1-06: a preflight for %s is a 204 without a token, and allows the requested headers by name',
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
      expect(names(answer.headers.get('access-control-allow-headers'))).toEqual(['authorization', 'x-target-server']);
      const methods = names(answer.headers.get('access-control-allow-methods'));
      for (const method of ['get', 'post', 'put', 'delete']) expect(methods).toContain(method);
      expect(names(answer.headers.get('access-control-expose-headers')).sort()).toEqual([...EXPOSED].sort());
    },
  );

  const many = Array.from({ length: 70 }, (_, at) => `x-h${at}`);
  /** What browsers ask for: the headers of tracers, of GraphQL clients and of MCP, and every character of a name. */
  const asked = [
    'authorization,baggage,traceparent,tracestate',
    'x-datadog-origin,x-datadog-parent-id,x-datadog-sampling-priority,x-datadog-trace-id',
    'baggage,content-type,sentry-trace,newrelic',
    'b3, uber-trace-id, x-b3-sampled, x-b3-spanid, x-b3-traceid',
    'apollographql-client-name,apollographql-client-version,content-type,x-apollo-operation-name',
    'authorization,content-type,last-event-id,mcp-method,mcp-name,mcp-protocol-version,mcp-session-id',
    'Authorization, X-Target-Server, If-Match, Idempotency-Key',
    "!#$%&'*+-.^_`|~09aZ",
    '*',
    many.slice(0, 64).join(),
  ];
  const preflights: [asked: string, allowed: string | undefined][] = [
    ...asked.map((names): [string, string] => [names, names.split(/, ?/).join(', ')]),
    [many.join(), many.slice(0, 64).join(', ')],
    [' , ,authorization,,\t,', 'authorization'],
    ['a b,"c",d:e,é,(f),authorization,g/h', 'authorization'],
    ['', undefined],
  ];

  it.each(preflights)('D1-06: a preflight that requests %j is allowed %j', async (asked, allowed) => {
    const answer = await sendRaw(
      p.url,
      request('OPTIONS', '/v1/accounts', {
        Origin: 'https://dashboard.example',
        'Access-Control-Request-Method': 'DELETE',
        'Access-Control-Request-Headers': asked,
      }),
    );
    expect(answer.status).toBe(204);
    expect(answer.headers['access-control-allow-headers']).toBe(allowed);
    expect(names(answer.headers['access-control-allow-methods'])).toContain('delete');
    expect(answer.headers['access-control-max-age']).toBe('600');
  });

  it('D1-06: header names in several lines are allowed together', async () => {
    const lines = ['authorization', 'traceparent, baggage'].map((names) => `Access-Control-Request-Headers: ${names}`);
    const preflight = request('OPTIONS', '/graphql', { Origin: 'https://dashboard.example' });
    const answer = await sendRaw(p.url, preflight.replace('\r\n\r\n', `\r\n${lines.join('\r\n')}\r\n\r\n`));
    expect(answer.headers['access-control-allow-headers']).toBe('authorization, traceparent, baggage');
  });

  it('D1-06: without an Origin, or with one that is not allowed, a preflight gets no CORS headers', async () => {
    await using strict = await startPortcullis({ env: { CORS_ORIGINS: 'https://dashboard.example' } });
    for (const headers of [{ origin: 'https://elsewhere.example' }, {}]) {
      const answer = await strict.call('OPTIONS', '/v1/accounts', {
        headers: { ...headers, 'access-control-request-headers': 'authorization' },
      });
      expect(answer.status).toBe(204);
      expect([...answer.headers.keys()].filter((name) => name.startsWith('access-control-'))).toEqual([]);
    }
    const allowed = { origin: 'https://dashboard.example', 'access-control-request-headers': 'authorization' };
    const answer = await strict.call('OPTIONS', '/v1/accounts', { headers: allowed });
    expect(answer.headers.get('access-control-allow-headers')).toBe('authorization');
    expect(answer.headers.get('access-control-allow-origin')).toBe('https://dashboard.example');
  });

  it('4.9-02: OPTIONS without preflight headers is a 204 too', async () => {
    expect((await p.call('OPTIONS', '/v1/accounts')).status).toBe(204);
  });

  it.each([
    [200, 'GET', '/health'],
    [400, 'POST', '/v2/oauth/token'],
    [401, 'GET', '/v1/accounts'],
    [401, 'POST', '/v2/webhooks'],
    [404, 'GET', '/nowhere'],
  ])('D1-06: a %i (%s %s) has the CORS headers with an Origin, and none without', async (...row) => {
    const [status, method, path] = row;
    const { headers, ...answer } = await p.call(method, path, { headers: { origin: 'https://dashboard.example' } });
    expect([answer.status, headers.get('access-control-allow-origin'), headers.get('vary')]).toEqual([
      status,
      '*',
      'Origin',
    ]);
    expect(headers.get('access-control-allow-credentials')).toBeNull();
    expect(names(headers.get('access-control-expose-headers')).sort()).toEqual([...EXPOSED].sort());
    const other = await p.call(method, path);
    expect([other.status, other.headers.get('vary')]).toEqual([status, 'Origin']);
    expect([...other.headers.keys()].filter((name) => name.startsWith('access-control-'))).toEqual([]);
  });

  it('D1-06: a rejected upgrade has the CORS headers too', async () => {
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

describe('a request head that is not valid HTTP', () => {
  const ORIGIN = 'Origin: https://dashboard.example\r\nX-Correlation-ID: mine\r\n';
  const utf8 = (text: string) => Buffer.from(text).toString('latin1');
  const HEADS: [what: string, head: string][] = [
    ['a target in UTF-8', utf8(`GET /v1/accounts?search=Zoë HTTP/1.1\r\nHost: x\r\n${ORIGIN}\r\n`)],
    ['a path of health in UTF-8', utf8(`GET /healthé HTTP/1.1\r\nHost: x\r\n${ORIGIN}\r\n`)],
    ['a query of health in UTF-8', utf8(`GET /health?q=☃ HTTP/1.1\r\nHost: x\r\n${ORIGIN}\r\n`)],
    ['a target in Latin-1', `GET /health?q=\xe9 HTTP/1.1\r\nHost: x\r\n${ORIGIN}\r\n`],
    ['a target with a space', `POST /v2/oauth/token?a b HTTP/1.1\r\nHost: x\r\n${ORIGIN}\r\n`],
    ['a field without a name', `GET /health HTTP/1.1\r\nHost: x\r\n${ORIGIN}: 1\r\n\r\n`],
    ['a name with a space', `GET /health HTTP/1.1\r\n${ORIGIN}X Y: 1\r\n\r\n`],
    ['a control character in a value', `GET /graphql HTTP/1.1\r\n${ORIGIN}X-Y: \x01\r\n\r\n`],
    ['two lengths', `POST /graphql HTTP/1.1\r\n${ORIGIN}Content-Length: 1\r\nContent-Length: 2\r\n\r\n`],
    ['lines that end in LF', `GET /health?\xff HTTP/1.1\nHost: x\n${ORIGIN.replaceAll('\r', '')}\n`],
  ];

  it.each(HEADS)('D1-06 D2-06 D2-13: with %s gets a 400 with the headers of every response', async (_what, head) => {
    const { status, headers, body } = await sendRaw(p.url, head);
    expect([status, headers]).toEqual([
      400,
      {
        'x-correlation-id': 'mine',
        vary: 'Origin',
        'access-control-allow-origin': '*',
        'access-control-expose-headers': expect.any(String),
        'content-type': 'application/json; charset=utf-8',
        'content-length': String(body.length),
        date: expect.stringMatching(/GMT$/),
        connection: 'close',
      },
    ]);
    expect(names(headers['access-control-expose-headers']).sort()).toEqual([...EXPOSED].sort());
    expect(JSON.parse(body)).toMatchObject({ code: -1, domain: 0, message: 'invalid_request', errors: [{ path: '' }] });
  });

  it('D1-06: gets no CORS header without an Origin, or with one that is not allowed', async () => {
    const bare = await sendRaw(
      p.url,
      'GET /\xc3\xa9 HTTP/1.1\r\nHost: x\r\n\r\nOrigin: https://in-the-body.example\r\n',
    );
    expect(bare.headers).toMatchObject({ vary: 'Origin' });
    expect(bare.headers).not.toHaveProperty('access-control-allow-origin');
    await using one = await startPortcullis({ env: { CORS_ORIGINS: 'https://app.example' } });
    const from = (origin: string) => sendRaw(one.url, `GET /\xc3\xa9 HTTP/1.1\r\nHost: x\r\nOrigin: ${origin}\r\n\r\n`);
    expect((await from('https://app.example')).headers['access-control-allow-origin']).toBe('https://app.example');
    expect((await from('https://evil.example')).headers).not.toHaveProperty('access-control-allow-origin');
  });

  it('D2-06: gets no body if its method is HEAD', async () => {
    const answer = await sendRaw(p.url, `HEAD /\xc3\xa9 HTTP/1.1\r\n${ORIGIN}\r\n`);
    expect([answer.status, answer.body, answer.headers['x-correlation-id']]).toEqual([400, '', 'mine']);
  });

  it('D2-13: gets an error that says to percent-encode the target', async () => {
    const answer = await sendRaw(p.url, 'GET /\xc3\xa9 HTTP/1.1\r\nHost: x\r\n\r\n');
    expect(JSON.parse(answer.body).errors).toEqual([
      { path: '', message: expect.stringContaining('other characters percent-encoded') },
    ]);
  });
});

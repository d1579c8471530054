import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Exchange } from '../../src/gateway/exchange/exchange.ts';
import { requestFields } from '../../src/gateway/proxy/headers.ts';
import {
  type Forwarder,
  type Seen,
  startForwarder,
  startUpstream,
  type TestUpstream,
} from '../support/gateway/forwarder.ts';
import { request, sendRaw, watched } from '../support/gateway/raw.ts';
import { type RawUpstream, startRawUpstream } from '../support/gateway/raw-upstream.ts';

let upstream: TestUpstream;
let raw: RawUpstream;
let answer = '';
let f: Forwarder;
/** Believes nobody. */
let edge: Forwarder;

beforeAll(async () => {
  upstream = await startUpstream((_req, res) => res.end('ok'));
  raw = await startRawUpstream((socket) => socket.write(answer, 'latin1'));
  const services = { plain: `${upstream.url}/base`, raw: { at: raw.url, breaker: { failures: 1_000 } } };
  const endpoints = [
    { methods: ['GET', 'POST'], path: '/plain/**', services: ['plain'] },
    { methods: ['GET', 'HEAD'], path: '/raw', services: ['raw'] },
  ];
  f = await startForwarder({ services, endpoints });
  edge = await startForwarder({ services, endpoints, trustProxy: ['192.0.2.1'] });
});
afterAll(async () => {
  await f[Symbol.asyncDispose]();
  await edge[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await raw[Symbol.asyncDispose]();
});

async function seenOf(headers: Record<string, string>, through = f): Promise<Seen> {
  const before = upstream.seen.length;
  const got = await sendRaw(through.url, request('GET', '/plain/x?y=%7E', headers));
  expect([got.status, upstream.seen.length]).toEqual([200, before + 1]);
  const seen = upstream.seen[before];
  if (!seen) throw new Error('there is one');
  return seen;
}

type Row = [clauses: string, what: string, sent: Record<string, string>, seen: Record<string, string | undefined>];

const HOPS = {
  ...{ Connection: 'close, X-Private, X-Other', 'X-Private': '1', 'x-other': '2', 'Keep-Alive': 'timeout=5' },
  ...{ TE: 'trailers', Trailer: 'X-Sum', Upgrade: 'h2c', 'Proxy-Connection': 'keep-alive' },
  'Proxy-Authorization': 'Basic c2VjcmV0',
};
const NO_HOPS = Object.fromEntries(Object.keys(HOPS).map((name) => [name.toLowerCase(), undefined]));
const NEEDED = {
  authorization: 'Bearer abc',
  cookie: 'a=b',
  'x-correlation-id': 'mine',
  'x-forwarded-for': '198.51.100.7',
};
const TOLD = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'api.example', 'ssl-client-fingerprint': 'ab:cd' };

/** What a client sends, and what the upstream sees of it. */
const REQUESTS: Row[] = [
  [
    'D2-10',
    'has no hop-by-hop field',
    { ...HOPS, 'X-Kept': 'yes' },
    { ...NO_HOPS, connection: 'keep-alive', 'x-kept': 'yes' },
  ],
  [
    'D2-10 D2-06',
    'keeps fields that every recipient needs, even if Connection names them',
    { Connection: `close, ${Object.keys(NEEDED)}, X-Real-IP, Host`, ...NEEDED },
    { ...NEEDED, 'x-real-ip': '198.51.100.7', host: expect.stringMatching(/^127\.0\.0\.1:\d+$/) },
  ],
  [
    'D2-10',
    'has the one client address that a trusted proxy sent',
    { 'X-Forwarded-For': '1.1.1.1, 198.51.100.7, 127.0.0.9', Forwarded: 'for=1.1.1.1', ...TOLD },
    { 'x-forwarded-for': '198.51.100.7', 'x-real-ip': '198.51.100.7', forwarded: undefined, ...TOLD },
  ],
  [
    'D2-23',
    'has no client address if the trusted proxy sent none',
    { 'X-Forwarded-For': '1.1.1.1, unknown', 'X-Real-IP': '1.1.1.1' },
    { 'x-forwarded-for': 'unknown', 'x-real-ip': '127.0.0.1' },
  ],
  ...Object.entries({ '': '1.1.1.1', unknown: 'unknown', '198.51.100.7': '198.51.100.7' }).map(
    ([last, address]): Row => {
      const sent = { 'X-Forwarded-For': '1.1.1.1', 'x-forwarded-for': last };
      return ['D2-23', `uses the last of two fields ("${last}")`, sent, { 'x-forwarded-for': address }];
    },
  ),
  ...Object.entries({
    https: 'https',
    'https, http': 'https',
    'HTTPS ,http': 'https',
    'http, https': 'http',
    x: 'http',
  }).map(([said, proto]): Row => {
    const sent = { 'X-Forwarded-Proto': said };
    return ['D2-10', `has the protocol of the client from "${said}"`, sent, { 'x-forwarded-proto': proto }];
  }),
  [
    'D2-05 D2-06',
    'carries the correlation id byte for byte',
    { 'X-Correlation-ID': 'caf\xe9' },
    { 'x-correlation-id': 'caf\xe9' },
  ],
  ['D2-05 D2-06', 'carries a new correlation id', {}, { 'x-correlation-id': expect.stringMatching(/^[0-9a-f-]{36}$/) }],
];

describe('a request to an upstream', () => {
  it.each(REQUESTS)('%s: %s', async (_clauses, _what, sent, seen) => {
    const { headers } = await seenOf(sent);
    expect(Object.fromEntries(Object.keys(seen).map((name) => [name, headers[name]]))).toEqual(seen);
  });

  it('D2-10 D1-05: has no proxy headers of an untrusted peer', async () => {
    const theirs = { 'X-Forwarded-For': '198.51.100.7', 'X-Forwarded-Prefix': '/evil', Host: 'gate.example', ...TOLD };
    const { headers } = await seenOf(theirs, edge);
    const [forwarded, own] = [{ 'x-forwarded-for': '127.0.0.1', 'x-forwarded-proto': 'http' }, 'gate.example'];
    expect(headers).toMatchObject({ ...forwarded, 'x-forwarded-host': own });
    for (const name of ['ssl-client-fingerprint', 'x-forwarded-prefix']) expect(headers).not.toHaveProperty(name);
  });

  it('D2-23: has no proxy header in any spelling, unless a trusted proxy set it', async () => {
    const names = [
      ...['X-Forwarded-For', 'X-Forwarded-User', 'X-Forwarded-SSL', 'X-Forwarded-Client-Cert', 'X-Forwarded-Anything'],
      ...['X-Forwarded', 'Forwarded', 'Forwarded-For', 'X-Real-IP', 'SSL-Client-Verify', 'SSL-Client-Fingerprint'],
      ...['SSL-Client-S-DN', 'SSL-Client-'],
    ];
    const spelled = names.flatMap((name) =>
      ['-', '_', '.', '~'].flatMap((sign) => [name.replaceAll('-', sign), name.toUpperCase().replace('-', sign)]),
    );
    const theirs = Object.fromEntries(spelled.map((name) => [name, 'forged']));
    const { rawHeaders } = await seenOf({ ...theirs, 'X-Forward': 'kept', 'SSL-Cipher': 'kept' }, edge);
    expect(rawHeaders.filter((text) => text === 'kept')).toHaveLength(2);
    expect(rawHeaders).not.toContain('forged');
    expect(rawHeaders.filter((text) => /forwarded|real|ssl.client/i.test(text))).toEqual([
      ...['x-forwarded-for', 'x-real-ip', 'x-forwarded-proto', 'x-forwarded-host'],
    ]);
    const trusted = {
      'X-Forwarded-Client-Cert': 'Hash=1',
      'SSL-Client-Verify': 'SUCCESS',
      ssl_client_fingerprint: 'a',
    };
    expect((await seenOf(trusted)).headers).toMatchObject({
      'x-forwarded-client-cert': 'Hash=1',
      'ssl-client-verify': 'SUCCESS',
    });
  });

  it('D2-27: combines repeated fields: with one value, or with all of them', async () => {
    const lines = ['Authorization: Bearer abc', 'X-Target-Server: plain', 'X-Any: 1'].map((line) => `${line}\r\n`);
    const head = request('GET', '/plain/x').replace(
      /\r\n$/,
      `${lines.join('')}${lines.join('').replace('1', '2')}\r\n`,
    );
    expect((await sendRaw(f.url, head)).status).toBe(200);
    const fields = { authorization: 'Bearer abc', 'x-target-server': 'plain', 'x-any': '1, 2' };
    expect(upstream.seen.at(-1)?.headers).toMatchObject(fields);
  });

  it.each([
    ['http://gate.example:99', {}, 'gate.example:99'],
    ['http://user@[::1]:8', {}, '[::1]:8'],
    ['http://gate.example', { 'X-Forwarded-Host': 'said.example' }, 'said.example'],
  ])('D2-10: for %s%j has the host of its target, whatever Host says', async (origin, said, expected) => {
    const got = await sendRaw(f.url, request('GET', `${origin}/plain/x`, { Host: 'other.example', ...said }));
    expect(got.status).toBe(200);
    expect(upstream.seen.at(-1)).toMatchObject({ url: '/base/plain/x', headers: { 'x-forwarded-host': expected } });
  });

  it.each([
    ['1.0', /^HTTP\/1\.1 200 /],
    ['1.1', /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /],
  ])('D2-10: of HTTP/%s gets 100 Continue if that version has it', async (version, expected) => {
    const { socket, text } = watched(f.url);
    const head = request('POST', '/plain/x', { Expect: '100-continue', 'Content-Length': '2' });
    socket.write(`${head.replace('HTTP/1.1', `HTTP/${version}`)}ok`);
    await once(socket, 'end');
    socket.destroy();
    expect(text()).toMatch(expected);
  });

  it('D2-10: goes to the normalized path after the prefix, with its query unchanged', async () => {
    const { url, method } = await seenOf({});
    expect([method, url]).toEqual(['GET', '/base/plain/x?y=%7E']);
    await sendRaw(f.url, request('GET', '/plain/%61b%2Cc?q=%2F..%2F'));
    expect(upstream.seen.at(-1)?.url).toBe('/base/plain/ab%2Cc?q=%2F..%2F');
  });

  it('D2-10: has no second length, no second host and no expectation', async () => {
    const { rawHeaders } = await seenOf({ Expect: '100-continue' });
    const names = rawHeaders.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase());
    expect(new Set(names).size).toBe(names.length);
    expect(names).not.toContain('expect');
    expect(names).not.toContain('content-length');
    expect(names).not.toContain('transfer-encoding');
  });
});

/** What the client gets for an answer in bytes. */
async function passed(head: string, body = '', method = 'GET') {
  answer = `${head.replaceAll('\n', '\r\n')}\r\n\r\n${body}`;
  return sendRaw(f.url, request(method, '/raw', { 'X-Correlation-ID': 'mine', Origin: 'https://app.example' }));
}

describe('the trace context of an upstream request', () => {
  const OURS = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
  const THEIRS = `00-${'a'.repeat(32)}-${'c'.repeat(16)}-01`;

  it.each<[string, Record<string, string>, string | undefined, Record<string, string>]>([
    [
      'is continued with its state',
      { traceparent: THEIRS },
      OURS,
      { traceparent: OURS, tracestate: 'x=1', baggage: 'y=2' },
    ],
    ['that cannot be read has no state', { traceparent: '00-1-2-01' }, OURS, { traceparent: OURS, baggage: 'y=2' }],
    ['that begins here has no state', {}, OURS, { traceparent: OURS, baggage: 'y=2' }],
    [
      'is the one of the client if tracing is off',
      { traceparent: 'a' },
      undefined,
      { traceparent: 'a', tracestate: 'x=1', baggage: 'y=2' },
    ],
  ])('%s', (_what, received, ours, sent) => {
    const req = { headers: { ...received, tracestate: 'x=1', baggage: 'y=2' } };
    const fields = requestFields({ req, realIp: '192.0.2.1', isPeerTrusted: false } as unknown as Exchange, ours);
    const pairs = fields.flatMap((name, at) => (at % 2 === 0 ? [[name, fields[at + 1]]] : []));
    expect(Object.fromEntries(pairs.filter(([name]) => /^trace|^baggage/.test(name ?? '')))).toEqual(sent);
  });
});

describe('an upstream response', () => {
  it('D2-10: loses its hop-by-hop fields, and keeps the others', async () => {
    const got = await passed(
      'HTTP/1.1 200 OK\nConnection: keep-alive, X-Hop\nX-Hop: 1\nKeep-Alive: timeout=9\nProxy-Authenticate: Basic\n' +
        'Upgrade: h2c\nTrailer: X-Sum\nX-Kept: yes\nETag: "1"\nSet-Cookie: a=1\nSet-Cookie: b=2\nContent-Length: 2',
      'ok',
    );
    expect(got).toMatchObject({
      status: 200,
      body: 'ok',
      headers: { 'x-kept': 'yes', etag: '"1"', 'set-cookie': 'b=2' },
    });
    for (const name of ['x-hop', 'proxy-authenticate', 'upgrade', 'trailer'])
      expect(got.headers).not.toHaveProperty(name);
    expect(got.headers.connection).toBe('close');
  });

  it('D2-06 D1-06: has one correlation id and one set of CORS headers, those of the gateway', async () => {
    const got = await passed(
      'HTTP/1.1 200 OK\nX-Correlation-ID: theirs\nAccess-Control-Allow-Origin: https://evil.example\n' +
        'Access-Control-Allow-Credentials: true\nContent-Length: 0',
    );
    expect(got.headers['x-correlation-id']).toBe('mine');
    expect(got.headers['access-control-allow-origin']).toBe('*');
    expect(got.headers).not.toHaveProperty('access-control-allow-credentials');
  });

  it('D2-10: has its non-ASCII field bytes unchanged', async () => {
    const got = await passed('HTTP/1.1 200 OK\nX-Name: caf\xe9 \xff\nContent-Length: 0');
    expect(got.headers['x-name']).toBe('caf\xe9 \xff');
  });

  it.each([
    ['HEAD', 'HTTP/1.1 200 OK\nContent-Length: 5', { 'content-length': '5' }],
    ['GET', 'HTTP/1.1 304 Not Modified\nETag: "1"\nContent-Length: 5', { etag: '"1"' }],
    ['GET', 'HTTP/1.1 204 No Content\nContent-Length: 0', {}],
  ])('D2-10: to %s, %s has no body', async (method, head, headers) => {
    const got = await passed(head, '', method);
    expect(got).toMatchObject({ status: Number(head.split(' ')[1]), headers, body: '' });
    if (got.status === 204) expect(got.headers).not.toHaveProperty('content-length');
  });

  it.each([
    ['a length that is repeated', 'HTTP/1.1 200 OK\nContent-Length: 2\nContent-Length: 3', 'ok!'],
    ['two lengths in a field', 'HTTP/1.1 200 OK\nContent-Length: 2, 2', 'ok'],
    ['a length that is not a number', 'HTTP/1.1 200 OK\nContent-Length: two', 'ok'],
    ['a length and chunks', 'HTTP/1.1 200 OK\nContent-Length: 2\nTransfer-Encoding: chunked', '2\r\nok\r\n0\r\n\r\n'],
    ['an unrequested transfer coding', 'HTTP/1.1 200 OK\nTransfer-Encoding: gzip, chunked', '0\r\n\r\n'],
    ['an invalid status', 'HTTP/1.1 999 No\nContent-Length: 0', ''],
    ['a status of two digits', 'HTTP/1.1 20 No\nContent-Length: 0', ''],
    ['a space before the colon', 'HTTP/1.1 200 OK\nX-A : 1\nContent-Length: 0', ''],
    ['a control character', 'HTTP/1.1 200 OK\nX-A: a\x01b\nContent-Length: 0', ''],
    ['another protocol', 'SSH-2.0-OpenSSH_9.9', ''],
    ['an unrequested upgrade', 'HTTP/1.1 101 Switching Protocols\nUpgrade: x\nConnection: upgrade', ''],
    ['headers without an end', `HTTP/1.1 200 OK\nX-A: ${'a'.repeat(70_000)}`, ''],
  ])('D2-10: with %s is a 502, and nothing of it is passed on', async (_name, head, body) => {
    const got = await passed(head, body);
    expect(got).toMatchObject({
      status: 502,
      headers: { 'x-correlation-id': 'mine' },
      body: '{"code":-1,"domain":0,"message":"bad_gateway"}',
    });
    expect(got.headers).not.toHaveProperty('x-a');
  });

  it('D2-10: bytes after its end are not used as another response', async () => {
    const got = await passed(
      'HTTP/1.1 200 OK\nContent-Length: 2',
      'okHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil',
    );
    expect(got.body).toBe('ok');
    const next = await passed('HTTP/1.1 200 OK\nContent-Length: 4', 'next');
    expect(next.body).toBe('next');
  });
});

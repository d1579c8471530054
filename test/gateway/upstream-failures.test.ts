import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { createServer, type Socket } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { CLOSED } from '../../src/gateway/endpoints/breaker.rules.ts';
import { envelope } from '../support/gateway/envelopes.ts';
import {
  type Forwarder,
  listening,
  startForwarder,
  startUpstream,
  type TestUpstream,
} from '../support/gateway/forwarder.ts';
import { begun, openSocket, readAnswer, request, sendRaw } from '../support/gateway/raw.ts';
import { type RawUpstream, startRawUpstream } from '../support/gateway/raw-upstream.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const FOREVER = { failures: 1_000 };

/** Answers that an upstream holds back. */
const held: ServerResponse[] = [];
let upstream: TestUpstream;
let raw: RawUpstream;
let act: (socket: Socket, before: number) => void;
let f: Forwarder;
const logged: string[] = [];

const endpoints = [
  { methods: ['GET', 'POST', 'PUT'], path: '/held', services: ['held'] },
  { methods: ['GET', 'POST'], path: '/short', services: ['held'], timeout_ms: 1_000 },
  { methods: ['POST'], path: '/small', services: ['held'], max_body_bytes: 10 },
  { methods: ['GET', 'POST', 'PUT'], path: '/raw', services: ['raw'] },
  { methods: ['GET', 'POST'], path: '/nobody', services: ['nobody'] },
];

beforeAll(async () => {
  upstream = await startUpstream((req, res) => {
    req.resume();
    held.push(res);
  });
  raw = await startRawUpstream((socket, _head, before) => act(socket, before));
  const free = createServer();
  const nobody = await listening(free);
  await new Promise((resolve) => free.close(resolve));
  const keep = (_fields: object, message: string) => void logged.push(JSON.stringify([_fields, message]));
  const services = {
    held: { at: upstream.url, breaker: FOREVER, idle_timeout_ms: 300 },
    raw: { at: raw.url, breaker: FOREVER, idle_timeout_ms: 300 },
    nobody: { at: nobody, breaker: FOREVER },
  };
  f = await startForwarder({ services, endpoints, log: { debug: keep, info: keep, warn: keep, error: keep } });
});
afterAll(async () => {
  await f[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await raw[Symbol.asyncDispose]();
});
beforeEach(() => {
  held.length = 0;
  upstream.seen.length = 0;
  raw.requests.length = 0;
  f.ended.length = 0;
  for (const service of f.upstreams.all)
    for (const name of Object.keys(service.counts)) Object.assign(service.counts, { [name]: 0 });
});

describe('an upstream that does not respond in time', () => {
  it('D2-10 D2-06: gets a 504 for its client, and its request is aborted', async () => {
    const got = await sendRaw(f.url, request('GET', '/short', { 'X-Correlation-ID': 'mine' }));
    expect(got).toMatchObject({
      status: 504,
      body: envelope('gateway_timeout'),
      headers: { 'x-correlation-id': 'mine' },
    });
    await vi.waitFor(() => expect(upstream.seen).toMatchObject([{ aborted: true }]));
    expect(f.upstream('held').counts).toMatchObject({ timedOut: 1, retried: 0, answered: 0 });
    await vi.waitFor(() => expect(f.ended).toMatchObject([{ status: 504, aborted: false }]));
    await vi.waitFor(() => expect(f.upstream('held').requests.held()).toBe(0));
  });

  it('D2-10: a client that does not send in time gets a 400, which does not count against the upstream', async () => {
    const before = f.upstream('held').circuit;
    const { socket } = begun(f.url, 'POST /short HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc');
    const got = await readAnswer(socket);
    expect([got.status, JSON.parse(got.body).errors]).toEqual([
      400,
      [{ path: '', message: 'must be sent without long pauses' }],
    ]);
    await vi.waitFor(() => expect(upstream.seen).toMatchObject([{ aborted: true }]));
    expect(f.upstream('held').circuit).toEqual(before);
  });

  it('D2-10: a response that stalls is cut', async () => {
    act = (socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc');
    const { socket, text } = begun(f.url, request('GET', '/raw'));
    await once(socket, 'close');
    expect(text()).toMatch(/content-length: 100\r\n[\s\S]*\r\n\r\nabc$/);
    await vi.waitFor(() => expect(f.ended).toMatchObject([{ status: 200, aborted: true }]));
  });
});

describe('an upstream that cannot be reached, or closes the connection', () => {
  it('D2-10: is a 502 after two attempts if nothing was sent', async () => {
    const got = await sendRaw(f.url, request('GET', '/nobody'));
    expect(got).toMatchObject({ status: 502, body: envelope('bad_gateway') });
    expect(f.upstream('nobody').counts).toMatchObject({ failed: 1, retried: 1 });
    const posted = await sendRaw(f.url, `${request('POST', '/nobody', { 'Content-Length': '2' })}ok`);
    expect(posted).toMatchObject({ status: 502, body: envelope('bad_gateway') });
    expect(f.upstream('nobody').counts).toMatchObject({ failed: 2, retried: 2 });
  });

  it('D2-10: receives the whole body once it can be reached', async () => {
    await using upstream = await startUpstream((req, res) => req.on('end', () => res.end('ok')));
    await using later = await startForwarder({ services: { a: upstream.url } });
    const { pool } = later.upstream('a');
    // The first connection fails, as one to a machine that is just starting does.
    const dispatch = vi.spyOn(pool, 'dispatch').mockImplementationOnce((_request, handler) => {
      const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
      setImmediate(() => handler.onResponseError?.(undefined as never, refused));
      return true;
    });
    const got = await sendRaw(later.url, `${request('POST', '/x', { 'Content-Length': '4' })}body`);
    expect([got.status, upstream.seen.map(({ body }) => body), dispatch.mock.calls.length]).toEqual([200, ['body'], 2]);
    expect(later.upstream('a').circuit).toEqual(CLOSED);
  });

  it.each([
    ...['GET', 'POST', 'PUT'].map((method) => [method, '', 'a new connection'] as const),
    ...(
      [
        ['GET', ''],
        ['POST', ''],
        ['PUT', 'ab'],
      ] as const
    ).map((sent) => [...sent, 'a kept connection'] as const),
  ])('D2-10: a %s with the body "%s" on %s that breaks was sent, and is not sent again', async (method, body, on) => {
    if (on === 'a kept connection') {
      act = (socket) => socket.write(OK);
      expect((await sendRaw(f.url, request('GET', '/raw'))).status).toBe(200);
      raw.requests.length = 0;
    } else {
      raw.sockets.splice(0).map((socket) => socket.destroy());
      await vi.waitFor(() => expect(f.upstream('raw').pool.stats.connected).toBe(0));
    }
    act = (socket) => socket.destroy();
    const length: Record<string, string> = body === '' ? {} : { 'Content-Length': `${body.length}` };
    const got = await sendRaw(f.url, `${request(method, '/raw', length)}${body}`);
    expect([got.status, raw.requests.length]).toEqual([502, 1]);
    expect(f.upstream('raw').counts).toMatchObject({ failed: 1, retried: 0 });
  });

  it('D2-10: a kept connection that was closed in the meantime is not used again', async () => {
    act = (socket) => socket.write(OK);
    expect((await sendRaw(f.url, request('POST', '/raw'))).status).toBe(200);
    raw.requests.length = 0;
    raw.sockets.splice(0).map((socket) => socket.end());
    await vi.waitFor(() => expect(f.upstream('raw').pool.stats.connected).toBe(0));
    expect((await sendRaw(f.url, request('POST', '/raw'))).status).toBe(200);
    expect(raw.requests.length).toBe(1);
  });

  it('D2-10: a response that breaks off in its head is a 502, and the request is not sent again', async () => {
    act = (socket) => socket.write(OK);
    await sendRaw(f.url, request('GET', '/raw'));
    raw.requests.length = 0;
    act = (socket) => socket.end('HTTP/1.1 200 OK\r\nX-Partial: 1\r\n');
    const got = await sendRaw(f.url, request('GET', '/raw'));
    expect([got.status, got.headers['x-partial'], raw.requests.length]).toEqual([502, undefined, 1]);
  });

  it('D2-10: no log line has anything of the request', () => {
    expect(logged.length).toBeGreaterThan(0);
    expect(logged.join('\n')).not.toMatch(/authorization|bearer/i);
  });
});

describe('a response that breaks off', () => {
  const partial: [name: string, head: string, body: string][] = [
    ['with a known length', 'Content-Length: 100', 'abc'],
    ['in chunks', 'Transfer-Encoding: chunked', '3\r\nabc\r\n'],
    ['within a chunk', 'Transfer-Encoding: chunked', '9\r\nabc'],
    ['with a broken chunk', 'Transfer-Encoding: chunked', '3\r\nabc\r\nzz\r\n'],
  ];

  it.each(partial)('D2-10: %s is not a complete response for the client either', async (_name, head, body) => {
    act = (socket) =>
      socket.write(`HTTP/1.1 200 OK\r\n${head}\r\n\r\n${body}`, () => setImmediate(() => socket.destroy()));
    const { socket, text } = begun(f.url, request('GET', '/raw'));
    await once(socket, 'close');
    expect(text()).not.toMatch(/\r\n0\r\n\r\n$/);
    expect(text()).not.toContain('bad_gateway');
    await vi.waitFor(() => expect(f.ended).toMatchObject([{ aborted: true }]));
    expect(raw.requests.length).toBe(1);
  });

  it('D2-10: an HTTP/1.0 client, for which the close ends the body, sees the connection reset', async () => {
    act = (socket) => socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n');
    const { socket } = begun(f.url, 'GET /raw HTTP/1.0\r\nHost: a\r\n\r\n');
    await once(socket, 'data');
    raw.sockets.at(-1)?.destroy();
    const [error] = await once(socket, 'error');
    expect(error).toMatchObject({ code: 'ECONNRESET' });
    await vi.waitFor(() => expect(f.ended).toMatchObject([{ aborted: true }]));
  });
});

describe('a client that disconnects', () => {
  it('D2-10 D2-07: aborts its upstream request, and leaves one record', async () => {
    const { socket } = begun(f.url, request('GET', '/held'));
    await vi.waitFor(() => expect(upstream.seen.length).toBe(1));
    socket.destroy();
    await vi.waitFor(() => expect(upstream.seen).toMatchObject([{ aborted: true }]));
    await vi.waitFor(() => expect(f.ended).toMatchObject([{ aborted: true }]));
    expect(f.upstream('held').counts).toMatchObject({ left: 1, failed: 0 });
    await vi.waitFor(() => expect(f.upstream('held').requests.held()).toBe(0));
  });

  it('D2-10 D2-07: aborts a running response, upstream too', async () => {
    const { socket } = begun(f.url, request('GET', '/held'));
    await vi.waitFor(() => expect(held.length).toBe(1));
    held[0]?.write('begun');
    await once(socket, 'data');
    socket.destroy();
    await vi.waitFor(() => expect(upstream.seen).toMatchObject([{ aborted: true }]));
    await vi.waitFor(() => expect(f.ended).toMatchObject([{ aborted: true, status: 200 }]));
  });

  it('D2-10: within its body does not make the upstream request complete', async () => {
    const { socket } = begun(f.url, 'POST /held HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n');
    await vi.waitFor(() => expect(upstream.seen[0]?.body).toBe('abc'));
    socket.destroy();
    await vi.waitFor(() => expect(upstream.seen).toMatchObject([{ aborted: true, body: 'abc' }]));
    await vi.waitFor(() => expect(f.ended.length).toBe(1));
  });

  it('D2-10: that stops reading is disconnected after a timeout', async () => {
    act = (socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${64 * 1024 * 1024}\r\n\r\n`);
      socket.write(Buffer.alloc(64 * 1024 * 1024));
    };
    const socket = openSocket(f.url);
    socket.on('error', () => undefined);
    socket.pause();
    socket.write(request('GET', '/raw'));
    await vi.waitFor(() => expect(f.ended).toMatchObject([{ aborted: true }]));
    expect(f.upstream('raw').counts).toMatchObject({ cut: 1 });
    await vi.waitFor(() => expect(f.upstream('raw').requests.held()).toBe(0));
    socket.destroy();
  });
});

describe('a request body that is not forwarded', () => {
  it('D2-14 D2-02: is rejected by its Content-Length before the upstream is contacted', async () => {
    const { socket } = begun(f.url, 'POST /small HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n');
    expect(await readAnswer(socket)).toMatchObject({ status: 413, body: envelope('payload_too_large') });
    expect(upstream.seen).toEqual([]);
  });

  it('D2-14 D2-02: if chunked, is rejected as soon as it passes its limit, and is never completed upstream', async () => {
    const { socket } = begun(
      f.url,
      'POST /small HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\n',
    );
    await vi.waitFor(() => expect(upstream.seen[0]?.body).toBe('0123456789'));
    socket.write('1\r\nx\r\n');
    expect(await readAnswer(socket)).toMatchObject({ status: 413, headers: { connection: 'close' } });
    await vi.waitFor(() => expect(upstream.seen).toMatchObject([{ aborted: true, body: '0123456789' }]));
    await vi.waitFor(() => expect(f.ended).toMatchObject([{ status: 413 }]));
  });

  it('D2-10: is a 400 if malformed, and is never completed upstream', async () => {
    const { socket } = begun(f.url, 'POST /held HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n');
    await vi.waitFor(() => expect(upstream.seen[0]?.body).toBe('abc'));
    socket.write('zz\r\n');
    expect((await readAnswer(socket)).status).toBe(400);
    await vi.waitFor(() => expect(upstream.seen).toMatchObject([{ aborted: true, body: 'abc' }]));
    await vi.waitFor(() => expect(f.ended).toMatchObject([{ status: 400 }]));
  });
});

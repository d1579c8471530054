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

describe('an upstream that does not answer in its time', () => {
  it('D2-10 D2-06: is a 504, and sees its request taken back', async () => {
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

  it('D2-10: a client that does not send in its time is told so, and it counts against nobody', async () => {
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

  it('D2-10: one that falls silent within its answer has it cut', async () => {
    act = (socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc');
    const { socket, text } = begun(f.url, request('GET', '/raw'));
    await once(socket, 'close');
    expect(text()).toMatch(/content-length: 100\r\n[\s\S]*\r\n\r\nabc$/);
    await vi.waitFor(() => expect(f.ended).toMatchObject([{ status: 200, aborted: true }]));
  });
});

describe('an upstream that cannot be reached, or breaks off', () => {
  it('D2-10: is a 502 after two attempts where nothing was sent', async () => {
    const got = await sendRaw(f.url, request('GET', '/nobody'));
    expect(got).toMatchObject({ status: 502, body: envelope('bad_gateway') });
    expect(f.upstream('nobody').counts).toMatchObject({ failed: 1, retried: 1 });
    const posted = await sendRaw(f.url, `${request('POST', '/nobody', { 'Content-Length': '2' })}ok`);
    expect(posted).toMatchObject({ status: 502, body: envelope('bad_gateway') });
    expect(f.upstream('nobody').counts).toMatchObject({ failed: 2, retried: 2 });
  });

  it('D2-10: is asked with the whole body once it can be reached', async () => {
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

  it('D2-10: a kept connection that was closed meanwhile carries nothing more', async () => {
    act = (socket) => socket.write(OK);
    expect((await sendRaw(f.url, request('POST', '/raw'))).status).toBe(200);
    raw.requests.length = 0;
    raw.sockets.splice(0).map((socket) => socket.end());
    await vi.waitFor(() => expect(f.upstream('raw').pool.stats.connected).toBe(0));
    expect((await sendRaw(f.url, request('POST', '/raw'))).status).toBe(200);
    expect(raw.requests.length).toBe(1);
  });

  it('D2-10: one that breaks off before its head is complete is a 502, and is not asked again', async () => {
    act = (socket) => socket.write(OK);
    await sendRaw(f.url, request('GET', '/raw'));
    raw.requests.length = 0;
    act = (socket) => socket.end('HTTP/1.1 200 OK\r\nX-Partial: 1\r\n');
    const got = await sendRaw(f.url, request('GET', '/raw'));
    expect([got.status, got.headers['x-partial'], raw.requests.length]).toEqual([502, undefined, 1]);
  });

  it('D2-10: nothing of what was asked with is in a log line', () => {
    expect(logged.length).toBeGreaterThan(0);
    expect(logged.join('\n')).not.toMatch(/authorization|bearer/i);
  });
});

describe('an answer that breaks off', () => {
  const partial: [name: string, head: string, body: string][] = [
    ['of a known length', 'Content-Length: 100', 'abc'],
    ['in chunks', 'Transfer-Encoding: chunked', '3\r\nabc\r\n'],
    ['within a chunk', 'Transfer-Encoding: chunked', '9\r\nabc'],
    ['with a broken chunk', 'Transfer-Encoding: chunked', '3\r\nabc\r\nzz\r\n'],
  ];

  it.each(partial)('D2-10: %s is no complete answer to the client either', async (_name, head, body) => {
    act = (socket) =>
      socket.write(`HTTP/1.1 200 OK\r\n${head}\r\n\r\n${body}`, () => setImmediate(() => socket.destroy()));
    const { socket, text } = begun(f.url, request('GET', '/raw'));
    await once(socket, 'close');
    expect(text()).not.toMatch(/\r\n0\r\n\r\n$/);
    expect(text()).not.toContain('bad_gateway');
    await vi.waitFor(() => expect(f.ended).toMatchObject([{ aborted: true }]));
    expect(raw.requests.length).toBe(1);
  });

  it('D2-10: an old client, to whom the end is the end, sees the connection reset', async () => {
    act = (socket) => socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n');
    const { socket } = begun(f.url, 'GET /raw HTTP/1.0\r\nHost: a\r\n\r\n');
    await once(socket, 'data');
    raw.sockets.at(-1)?.destroy();
    const [error] = await once(socket, 'error');
    expect(error).toMatchObject({ code: 'ECONNRESET' });
    await vi.waitFor(() => expect(f.ended).toMatchObject([{ aborted: true }]));
  });
});

describe('a client that leaves', () => {
  it('D2-10 D2-07: takes its request back, and leaves one record', async () => {
    const { socket } = begun(f.url, request('GET', '/held'));
    await vi.waitFor(() => expect(upstream.seen.length).toBe(1));
    socket.destroy();
    await vi.waitFor(() => expect(upstream.seen).toMatchObject([{ aborted: true }]));
    await vi.waitFor(() => expect(f.ended).toMatchObject([{ aborted: true }]));
    expect(f.upstream('held').counts).toMatchObject({ left: 1, failed: 0 });
    await vi.waitFor(() => expect(f.upstream('held').requests.held()).toBe(0));
  });

  it('D2-10 D2-07: ends an answer that is on its way, upstream too', async () => {
    const { socket } = begun(f.url, request('GET', '/held'));
    await vi.waitFor(() => expect(held.length).toBe(1));
    held[0]?.write('begun');
    await once(socket, 'data');
    socket.destroy();
    await vi.waitFor(() => expect(upstream.seen).toMatchObject([{ aborted: true }]));
    await vi.waitFor(() => expect(f.ended).toMatchObject([{ aborted: true, status: 200 }]));
  });

  it('D2-10: within its body is not an upstream’s complete request', async () => {
    const { socket } = begun(f.url, 'POST /held HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n');
    await vi.waitFor(() => expect(upstream.seen[0]?.body).toBe('abc'));
    socket.destroy();
    await vi.waitFor(() => expect(upstream.seen).toMatchObject([{ aborted: true, body: 'abc' }]));
    await vi.waitFor(() => expect(f.ended.length).toBe(1));
  });

  it('D2-10: one that stops reading is left after a while', async () => {
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

describe('a body that is not passed', () => {
  it('D2-14 D2-02: by its announced length it is refused before the upstream hears of it', async () => {
    const { socket } = begun(f.url, 'POST /small HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n');
    expect(await readAnswer(socket)).toMatchObject({ status: 413, body: envelope('payload_too_large') });
    expect(upstream.seen).toEqual([]);
  });

  it('D2-14 D2-02: in chunks it is refused the moment it passes its limit, and never ends upstream', async () => {
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

  it('D2-10: what is no HTTP is a 400, and never ends upstream', async () => {
    const { socket } = begun(f.url, 'POST /held HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n');
    await vi.waitFor(() => expect(upstream.seen[0]?.body).toBe('abc'));
    socket.write('zz\r\n');
    expect((await readAnswer(socket)).status).toBe(400);
    await vi.waitFor(() => expect(upstream.seen).toMatchObject([{ aborted: true, body: 'abc' }]));
    await vi.waitFor(() => expect(f.ended).toMatchObject([{ status: 400 }]));
  });
});

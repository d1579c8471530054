import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { describe, expect, it, vi } from 'vitest';
import { CLOSED } from '../../src/gateway/endpoints/breaker.rules.ts';
import { envelope } from '../support/gateway/envelopes.ts';
import { type Forwarder, startForwarder, startUpstream, type TestUpstream } from '../support/gateway/forwarder.ts';
import { openSocket, request, sendRaw, UPGRADE } from '../support/gateway/raw.ts';
import { startRawUpstream } from '../support/gateway/raw-upstream.ts';

interface Slow extends TestUpstream {
  held: ServerResponse[];
}

/** An upstream that answers when it is told to. */
async function slowUpstream(): Promise<Slow> {
  const held: ServerResponse[] = [];
  return Object.assign(await startUpstream((_req, res) => void held.push(res)), { held });
}

const ask = (f: Forwarder, path = '/x', from = '127.0.0.1') => sendRaw(f.url, request('GET', path), { from });
/** Two clients, by turns. */
const CLIENTS = ['127.0.0.1', '127.0.0.2'];

describe('an upstream under too much load', () => {
  it('D2-10: gets at most the configured concurrent requests; some are queued, and others get 503', async () => {
    await using upstream = await slowUpstream();
    await using f = await startForwarder({ services: { slow: { at: upstream.url, connections: 2, queue: 4 } } });
    const { requests, counts } = f.upstream('slow');
    const answers = Array.from({ length: 6 }, (_, at) => ask(f, '/x', CLIENTS[at % 2]));
    await vi.waitFor(() => expect([upstream.held.length, requests.waiting()]).toEqual([2, 4]));
    const refused = await ask(f);
    expect(refused).toMatchObject({
      status: 503,
      headers: { 'retry-after': '1' },
      body: envelope('service_unavailable'),
    });
    for (let index = 0; index < 6; index++) {
      await vi.waitFor(() => expect(upstream.held.length).toBeGreaterThan(index));
      expect(upstream.held.length - index).toBeLessThanOrEqual(2);
      upstream.held[index]?.end('done');
    }
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(Array(6).fill(200));
    expect(upstream.connections).toBeLessThanOrEqual(2);
    expect([requests.held(), requests.waiting(), counts.refused]).toEqual([0, 0, 1]);
  });

  it('D2-10: a client that leaves the queue is not forwarded, and one that waits too long gets 504', async () => {
    await using upstream = await slowUpstream();
    const endpoints = [
      { methods: ['GET'], path: '/x', services: ['slow'] },
      { methods: ['GET'], path: '/short', services: ['slow'], timeout_ms: 50 },
    ];
    await using f = await startForwarder({ services: { slow: { at: upstream.url, connections: 1 } }, endpoints });
    const { requests } = f.upstream('slow');
    const first = ask(f);
    await vi.waitFor(() => expect(upstream.held.length).toBe(1));
    const leaver = openSocket(f.url);
    leaver.write(request('GET', '/x'));
    await vi.waitFor(() => expect(requests.waiting()).toBe(1));
    leaver.destroy();
    await vi.waitFor(() => expect(requests.waiting()).toBe(0));
    expect((await ask(f, '/short')).status).toBe(504);
    upstream.held[0]?.end('done');
    expect((await first).status).toBe(200);
    const last = ask(f);
    await vi.waitFor(() => expect(upstream.held.length).toBe(2));
    upstream.held[1]?.end('done');
    expect([(await last).status, upstream.seen.length]).toEqual([200, 2]);
  });

  it('D2-10: does not affect other upstreams when it is frozen', async () => {
    await using frozen = await startRawUpstream(() => undefined);
    await using upstream = await startUpstream((_req, res) => res.end('ok'));
    const endpoints = ['frozen', 'plain'].map((name) => ({ methods: ['GET'], path: `/${name}`, services: [name] }));
    const services = { frozen: { at: frozen.url, connections: 4, queue: 4 }, plain: upstream.url };
    await using f = await startForwarder({ services, endpoints });
    const waiting = Array.from({ length: 7 }, (_, at) => {
      const socket = openSocket(f.url, { from: CLIENTS[at % 2] });
      socket.write(request('GET', '/frozen'));
      return socket;
    });
    await vi.waitFor(() => expect(f.upstream('frozen').requests.waiting()).toBe(4));
    for (let round = 0; round < 20; round++) {
      const got = await Promise.all([ask(f, '/plain'), ask(f, '/frozen')]);
      expect(got.map(({ status }) => status)).toEqual([200, 503]);
    }
    expect([f.upstream('plain').counts.answered, upstream.seen.length, frozen.sockets.length]).toEqual([20, 20, 3]);
    for (const socket of waiting) socket.destroy();
  });
});

describe('the permits of an upstream', () => {
  const bearer = (tenant: string) => ({ Authorization: `Bearer ${tenant}` });
  /** The bytes of a request of each kind that holds a permit until its client leaves. */
  const kinds: Record<string, (headers: Record<string, string>) => string> = {
    'requests whose bodies trickle': (headers) => `${request('POST', '/x', { ...headers, 'Content-Length': '9' })}a`,
    'event streams': (headers) => request('GET', '/stream', headers),
    WebSockets: (headers) => request('GET', '/socket', { ...UPGRADE, ...headers }),
  };
  const cases = Object.keys(kinds).flatMap((kind) => [
    { kind, whose: 'tenant' },
    { kind, whose: 'address' },
  ]);

  it.each(cases)(
    'D2-10 D6-26: $kind of one $whose leave permits for those of three others',
    async ({ kind, whose }) => {
      await using upstream = await startUpstream((req, res) => {
        if (req.url === '/stream') res.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('data: 1\n\n');
        else req.on('end', () => res.end('done')).resume();
      });
      upstream.server.on('upgrade', (_req, socket: Socket) => {
        for (const event of ['end', 'error']) socket.on(event, () => socket.destroy());
        socket.resume().write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n');
      });
      const services = { a: { at: upstream.url, connections: 8, queue: 4, websockets: 8 } };
      const options = whose === 'tenant' ? { guard: async () => undefined, nodeOf: (token: string) => token } : {};
      await using f = await startForwarder({ services, ...options });
      const permits = kind === 'WebSockets' ? f.upstream('a').sockets : f.upstream('a').requests;
      const keys = [1, 2, 3, 4].map((at) => `127.0.0.${at}`);
      const [own = ''] = keys;
      using opened = new DisposableStack();
      const begin = (key: string) => {
        const socket = openSocket(f.url, { from: whose === 'tenant' ? '127.0.0.1' : key });
        socket.write(kinds[kind]?.(bearer(key)) ?? '');
        opened.defer(() => socket.destroy());
      };
      for (let count = 0; count < 12; count++) begin(own);
      await vi.waitFor(() => expect(f.ended).toHaveLength(kind === 'WebSockets' ? 8 : 4));
      for (const key of keys.slice(1)) {
        begin(key);
        await vi.waitFor(() => expect(permits.held(key)).toBe(1));
      }
      expect(keys.map((key) => permits.held(key))).toEqual([4, 1, 1, 1]);
      opened.dispose();
      await vi.waitFor(() => expect([permits.held(), permits.waiting()]).toEqual([0, 0]));
    },
  );
});

describe('the circuit of an upstream', () => {
  const BREAKER = { failures: 3, open_ms: 5_000 };

  it('D2-10: opens after consecutive failures, sends nothing while open, and closes when a probe is answered', async () => {
    let nowMs = 0;
    let fails = true;
    await using upstream = await startUpstream((_req, res) => (fails ? res.destroy() : res.end('ok')));
    await using f = await startForwarder({
      services: { a: { at: upstream.url, breaker: BREAKER } },
      nowMs: () => nowMs,
    });
    const statuses = async (count: number) => {
      const all: number[] = [];
      for (let index = 0; index < count; index++) all.push((await ask(f, '/x', CLIENTS[index % 2])).status);
      return all;
    };
    expect(await statuses(2)).toEqual([502, 502]);
    fails = false;
    expect(await statuses(1)).toEqual([200]);
    fails = true;
    expect(await statuses(4)).toEqual([502, 502, 502, 503]);
    expect(f.upstream('a').circuit).toEqual({ kind: 'open', untilMs: 5_000 });
    const sent = upstream.seen.length;
    nowMs = 3_500;
    expect(await ask(f)).toMatchObject({ status: 503, headers: { 'retry-after': '2' } });
    expect(upstream.seen.length).toBe(sent);
    nowMs = 5_000;
    expect(await statuses(3)).toEqual([502, 502, 503]);
    expect([f.upstream('a').circuit, upstream.seen.length]).toEqual([{ kind: 'open', untilMs: 10_000 }, sent + 2]);
    nowMs = 10_000;
    fails = false;
    expect(await statuses(3)).toEqual([200, 200, 200]);
    expect(f.upstream('a').circuit).toEqual(CLOSED);
  });

  it('D2-10: one request per client probes at a time; one whose client disconnects decides nothing, and the next one probes', async () => {
    let nowMs = 0;
    await using upstream = await slowUpstream();
    await using f = await startForwarder({
      services: { a: { at: upstream.url, breaker: BREAKER } },
      nowMs: () => nowMs,
    });
    const { sockets } = { sockets: Array.from({ length: 3 }, (_, at) => ask(f, '/x', CLIENTS[at % 2])) };
    await vi.waitFor(() => expect(upstream.held.length).toBe(3));
    for (const res of upstream.held) res.destroy();
    await Promise.all(sockets);
    nowMs = 5_000;
    const trial = openSocket(f.url);
    trial.write(request('GET', '/x'));
    await vi.waitFor(() => expect(upstream.held.length).toBe(4));
    expect(await ask(f)).toMatchObject({ status: 503, headers: { 'retry-after': '1' } });
    trial.destroy();
    await vi.waitFor(() => expect(f.upstream('a').circuit).toMatchObject({ kind: 'half_open', trying: [] }));
    const next = ask(f);
    await vi.waitFor(() => expect(upstream.held.length).toBe(5));
    upstream.held[4]?.end('ok');
    expect((await next).status).toBe(200);
    expect(f.upstream('a').circuit.kind).toBe('closed');
  });

  it('D2-10: rejects queued requests when it opens', async () => {
    await using upstream = await slowUpstream();
    const service = { at: upstream.url, connections: 5, breaker: { failures: 2 } };
    await using f = await startForwarder({ services: { a: service } });
    const first = ask(f, '/x', CLIENTS[1]);
    await vi.waitFor(() => expect(upstream.held.length).toBe(1));
    const answers = Array.from({ length: 7 }, () => ask(f));
    await vi.waitFor(() => expect([upstream.held.length, f.upstream('a').requests.waiting()]).toEqual([3, 5]));
    upstream.held[0]?.destroy();
    expect((await first).status).toBe(502);
    await vi.waitFor(() => expect(upstream.held.length).toBe(4));
    upstream.held[1]?.destroy();
    await vi.waitFor(() => expect(f.upstream('a').requests.waiting()).toBe(0));
    for (const res of upstream.held) res.end('ok');
    const statuses = (await Promise.all(answers)).map(({ status }) => status);
    expect(statuses.sort()).toEqual([200, 200, 502, 503, 503, 503, 503]);
    expect([f.upstream('a').circuit.kind, upstream.seen.length]).toEqual(['open', 4]);
  });

  it('D2-10: counts a 5xx as a response, and a timeout as a failure', async () => {
    let status = 500;
    await using upstream = await startUpstream((_req, res) => {
      if (status > 0) res.writeHead(status).end('theirs');
    });
    const endpoints = [
      { methods: ['GET'], path: '/x', services: ['a'] },
      { methods: ['GET'], path: '/hasty', services: ['a'], timeout_ms: 40 },
    ];
    await using f = await startForwarder({ services: { a: { at: upstream.url, breaker: BREAKER } }, endpoints });
    for (status of [500, 503, 502, 504]) expect((await ask(f)).status).toBe(status);
    expect(f.upstream('a').circuit).toEqual(CLOSED);
    status = 0;
    for (let index = 0; index < 3; index++) expect((await ask(f, '/hasty', CLIENTS[index % 2])).status).toBe(504);
    expect(f.upstream('a').circuit.kind).toBe('open');
  });
});

describe('an endpoint with a fixed set of statuses', () => {
  type Act = (res: ServerResponse) => unknown;
  const answers: [name: string, act: Act, status: number, message: string][] = [
    ['does not answer', () => undefined, 500, 'internal_error'],
    ['closes the connection', (res) => res.destroy(), 500, 'internal_error'],
    ['says 503', (res) => res.writeHead(503, { 'Retry-After': '9' }).end('theirs'), 500, 'internal_error'],
    ['says 502', (res) => res.writeHead(502).end('theirs'), 500, 'internal_error'],
    ['says 504', (res) => res.writeHead(504).end('theirs'), 500, 'internal_error'],
    ['says 413', (res) => res.writeHead(413).end('theirs'), 400, 'invalid_request'],
  ];
  const endpoint = {
    methods: ['POST'],
    path: '/x',
    services: ['a'],
    max_body_bytes: 4,
    statuses: 'closed',
  };
  const hasty = { ...endpoint, timeout_ms: 60 };
  const post = (f: Forwarder, body = 'ok', from = '127.0.0.1') =>
    sendRaw(f.url, `${request('POST', '/x', { 'Content-Length': `${body.length}` })}${body}`, { from });

  it.each(answers)('D2-14 D2-10: gets one of them from an upstream that %s', async (name, act, status, message) => {
    await using upstream = await startUpstream((_req, res) => void act(res));
    const endpoints = [name === 'does not answer' ? hasty : endpoint];
    await using f = await startForwarder({ services: { a: upstream.url }, endpoints });
    const got = await post(f);
    expect([got.status, JSON.parse(got.body).message]).toEqual([status, message]);
    expect(got.headers).not.toHaveProperty('retry-after');
  });

  it('D2-14 D2-10: gets one of them for an open circuit, a full queue or a body over its limit', async () => {
    await using upstream = await slowUpstream();
    const service = { at: upstream.url, connections: 1, queue: 0, breaker: { failures: 1 } };
    await using f = await startForwarder({ services: { a: service }, endpoints: [hasty] });
    const first = post(f);
    await vi.waitFor(() => expect(upstream.held.length).toBe(1));
    expect(await post(f)).toMatchObject({ status: 500, body: envelope('internal_error') });
    expect((await first).status).toBe(500);
    expect((await post(f, 'ok', '127.0.0.2')).status).toBe(500);
    expect(f.upstream('a').circuit.kind).toBe('open');
    const got = await post(f);
    expect(got).toMatchObject({ status: 500, body: envelope('internal_error') });
    expect(got.headers).not.toHaveProperty('retry-after');
    const long = await post(f, 'too long');
    expect([long.status, JSON.parse(long.body).errors]).toEqual([
      400,
      [{ path: '', message: 'must be at most 4 bytes' }],
    ]);
  });

  it.each([200, 400, 401, 409, 500])('D2-10: passes on a %i of the upstream', async (status) => {
    await using upstream = await startUpstream((_req, res) => res.writeHead(status).end('theirs'));
    await using f = await startForwarder({ services: { a: upstream.url }, endpoints: [endpoint] });
    expect((await post(f)).status).toBe(status);
  });
});

import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { CLOSED } from '../../src/gateway/endpoints/breaker.rules.ts';
import { type Forwarder, listening, startForwarder } from '../support/gateway/forwarder.ts';
import { begun, request, sendRaw, UPGRADE } from '../support/gateway/raw.ts';
import { type RawUpstream, startRawUpstream } from '../support/gateway/raw-upstream.ts';

const BREAKER = { failures: 3, open_ms: 5_000 };
const KIBIBYTE = 1_024;
/** Two clients without a token are told apart by their addresses. */
const [ONE, OTHER] = ['127.0.0.1', '127.0.0.2'];

let nowMs = 0;
let act: (socket: Socket, head: string) => unknown;
beforeEach(() => {
  nowMs = 0;
});

interface Fixture extends AsyncDisposable {
  f: Forwarder;
  upstream: RawUpstream;
  ask(from?: string, path?: string): Promise<number>;
}

async function fixture(options: Partial<Parameters<typeof startForwarder>[0]> = {}): Promise<Fixture> {
  const upstream = await startRawUpstream((socket, head) => act(socket, head));
  const endpoints = [
    { methods: ['GET'], path: '/x', services: ['a'] },
    { methods: ['GET'], path: '/hasty', services: ['a'], timeout_ms: 60 },
  ];
  const services = { a: { at: upstream.url, breaker: BREAKER } };
  const f = await startForwarder({ services, endpoints, nowMs: () => nowMs, ...options });
  return {
    f,
    upstream,
    ask: async (from = ONE, path = '/x') => (await sendRaw(f.url, request('GET', path), { from })).status,
    async [Symbol.asyncDispose]() {
      await f[Symbol.asyncDispose]();
      await upstream[Symbol.asyncDispose]();
    },
  };
}

const ok = (socket: Socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
const headOf = (bytes: number) => `HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /${'x'.repeat(bytes)}\r\n\r\n`;
const fields = (count: number) =>
  `HTTP/1.1 200 OK\r\nContent-Length: 0\r\n${Array.from({ length: count }, (_, at) => `X-${at}: ${'y'.repeat(KIBIBYTE)}\r\n`).join('')}\r\n`;

describe('an upstream response', () => {
  it.each<[name: string, bytes: string, status: number]>([
    ['with 17 KiB in Location', headOf(17 * KIBIBYTE), 302],
    ['with a head of just under 64 KiB', headOf(64 * KIBIBYTE - 100), 302],
    ['with 20 fields of 1 KiB', fields(20), 200],
    ['with a 103 before it', `HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${fields(1)}`, 103],
  ])('D6-27: %s is passed on', async (_name, bytes, status) => {
    act = (socket) => socket.write(bytes);
    await using s = await fixture();
    expect(await s.ask()).toBe(status);
    expect(s.f.upstream('a').circuit).toEqual(CLOSED);
  });

  it.each<[name: string, bytes: string]>([
    ['with a head of 64 KiB and more', headOf(64 * KIBIBYTE)],
    ['with 70 fields of 1 KiB', fields(70)],
    ['of an unrequested 100 Continue', 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'],
    ['of an unrequested 101', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n'],
    ['that is not HTTP', 'SSH-2.0-OpenSSH_9.6\r\n'],
    ['with two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'],
    ['with a length and chunks', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['with a NUL in a field', 'HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n'],
    ['with an unknown transfer coding', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n'],
    ['with an invalid status', 'HTTP/1.1 999 ?\r\nContent-Length: 0\r\n\r\n'],
  ])('D6-27: %s fails only its own request', async (_name, bytes) => {
    let isBad = true;
    act = (socket) => (isBad ? socket.write(bytes) : ok(socket));
    await using s = await fixture();
    const { counts } = s.f.upstream('a');
    for (const from of [ONE, OTHER, ONE, OTHER, ONE]) expect(await s.ask(from)).toBe(502);
    expect([s.f.upstream('a').circuit, counts.invalid, counts.failed]).toEqual([CLOSED, 5, 0]);
    isBad = false;
    expect(await s.ask()).toBe(200);
  });

  it('D6-27: that breaks off in its head, or is too slow byte by byte, does not count for the circuit', async () => {
    act = (socket) => socket.end('HTTP/1.1 200 OK\r\nX-Part');
    await using s = await fixture();
    for (const from of [ONE, OTHER, ONE, OTHER]) expect(await s.ask(from)).toBe(502);
    act = (socket) => socket.write('HTTP/1.1 2');
    for (const from of [ONE, OTHER, ONE, OTHER]) expect(await s.ask(from, '/hasty')).toBe(504);
    expect(s.f.upstream('a').circuit).toEqual(CLOSED);
  });

  it('D6-27: to a WebSocket handshake that is too long fails only that handshake', async () => {
    act = (socket) =>
      socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nX: ${'x'.repeat(64 * KIBIBYTE)}\r\n\r\n`);
    await using s = await fixture();
    for (let round = 0; round < 4; round++) {
      const { socket, text } = begun(s.f.url, request('GET', '/x', UPGRADE));
      await once(socket, 'close');
      expect(text()).toMatch(/^HTTP\/1.1 502/);
    }
    expect(s.f.upstream('a').circuit).toEqual(CLOSED);
  });
});

describe('broken connections and timeouts', () => {
  it.each([
    ['broken connections', '/x', (socket: Socket) => socket.destroy(), 502],
    ['timeouts', '/hasty', () => undefined, 504],
  ] as const)(
    'D6-27: %s of one client do not open the circuit; of two clients they do',
    async (_what, path, fail, status) => {
      act = fail;
      await using s = await fixture();
      for (let count = 0; count < 6; count++) expect(await s.ask(ONE, path)).toBe(status);
      expect(s.f.upstream('a').circuit.kind).toBe('closed');
      expect(await s.ask(OTHER, path)).toBe(status);
      expect(s.f.upstream('a').circuit.kind).toBe('open');
      expect(await s.ask(OTHER, path)).toBe(503);
    },
  );

  it('D6-27: a response in between restarts the count', async () => {
    await using s = await fixture();
    for (const from of [ONE, OTHER, ONE, OTHER]) {
      act = (socket) => socket.destroy();
      expect([await s.ask(from), await s.ask(OTHER)]).toEqual([502, 502]);
      act = ok;
      expect(await s.ask(ONE)).toBe(200);
    }
    expect(s.f.upstream('a').circuit).toEqual(CLOSED);
  });

  it('D6-27: clients are identified by their tokens, whatever address they use', async () => {
    act = (socket) => socket.destroy();
    await using s = await fixture({ guard: async () => undefined, clientOf: (token) => token });
    const ask = async (token: string, from: string) => {
      const bytes = request('GET', '/x', { Authorization: `Bearer ${token}` });
      return (await sendRaw(s.f.url, bytes, { from })).status;
    };
    for (const from of [ONE, OTHER, ONE, OTHER]) expect(await ask('first', from)).toBe(502);
    expect(s.f.upstream('a').circuit.kind).toBe('closed');
    expect(await ask('second', ONE)).toBe(502);
    expect(s.f.upstream('a').circuit.kind).toBe('open');
  });
});

it('D6-27: failures to connect open the circuit, whichever client they hit', async () => {
  const free = createServer();
  const nobody = await listening(free);
  await new Promise((resolve) => free.close(resolve));
  await using s = await fixture({ services: { a: { at: nobody, breaker: BREAKER } } });
  expect([await s.ask(), await s.ask(), await s.ask(), await s.ask()]).toEqual([502, 502, 502, 503]);
});

describe('probes of an open circuit', () => {
  /** Opens the circuit, and lets its time pass. */
  async function opened(): Promise<Fixture> {
    act = (socket) => socket.destroy();
    const s = await fixture();
    for (const from of [ONE, OTHER, ONE]) await s.ask(from);
    expect(s.f.upstream('a').circuit.kind).toBe('open');
    nowMs = BREAKER.open_ms;
    return s;
  }

  it('D6-27: one client whose probes break does not keep the circuit open for others', async () => {
    await using s = await opened();
    for (let count = 0; count < 4; count++) expect(await s.ask(ONE)).toBe(502);
    act = ok;
    expect([await s.ask(OTHER), await s.ask(ONE)]).toEqual([200, 200]);
    expect(s.f.upstream('a').circuit).toEqual(CLOSED);
  });

  it('D6-27: one client whose probe hangs does not delay the probe of another', async () => {
    await using s = await opened();
    act = () => undefined;
    const hanging = begun(s.f.url, request('GET', '/x'));
    await vi.waitFor(() => expect(s.f.upstream('a').circuit).toMatchObject({ trying: [ONE] }));
    expect(await s.ask(ONE)).toBe(503);
    act = ok;
    expect(await s.ask(OTHER)).toBe(200);
    expect(s.f.upstream('a').circuit).toEqual(CLOSED);
    hanging.socket.destroy();
  });

  it('D6-27: broken probes of two clients, or one that cannot connect, open the circuit again', async () => {
    await using s = await opened();
    expect([await s.ask(ONE), await s.ask(OTHER), await s.ask(ONE)]).toEqual([502, 502, 503]);
    expect(s.f.upstream('a').circuit).toEqual({ kind: 'open', untilMs: 2 * BREAKER.open_ms });
    nowMs = 2 * BREAKER.open_ms;
    await s.upstream[Symbol.asyncDispose]();
    expect([await s.ask(ONE), await s.ask(ONE)]).toEqual([502, 503]);
    expect(s.f.upstream('a').circuit).toEqual({ kind: 'open', untilMs: 3 * BREAKER.open_ms });
  });
});

import type { Writable } from 'node:stream';
import { expect, it, vi } from 'vitest';
import type { Exchange } from '../../src/gateway/exchange/exchange.ts';
import { type ConnectionTimes, ingress } from '../../src/gateway/gateway.ts';
import { type Forwarder, startForwarder } from '../support/gateway/forwarder.ts';
import { request, sendRaw, UPGRADE, type Watched, watched } from '../support/gateway/raw.ts';

const NEVER_MS = 600_000;
const CONNECTIONS = 400;
const KEPT = request('GET', '/x', { Connection: 'keep-alive' });

const TIMES = { headMs: 500, idleMs: NEVER_MS, checkEveryMs: 50 };
const SLOW = 200;
const A_BYTE_EVERY_MS = 20;
const HEAD = `GET /x HTTP/1.1\r\nHost: a\r\nX-Filler: ${'x'.repeat(10_000)}`;
/** The refusal says that nothing may follow. */
const REFUSED = /^HTTP\/1\.1 400 [\s\S]*\r\nConnection: close\r\n[\s\S]*must be sent without long pauses/;

/** The public listener with other times; it answers every request with `ok`, unless `local` answers it. */
const startFixture = (
  times: ConnectionTimes,
  local: (exchange: Exchange) => void = ({ res }) => void res.end('ok'),
): Promise<Forwarder> => startForwarder({ services: { a: 'local' }, times, local });
const statusesOf = ({ ended }: Forwarder) => ended.map(({ status }) => status);

/** Sends a head a byte at a time, until the connection ends. */
function drip({ socket, isOpen }: Watched): void {
  let at = 0;
  const timer = setInterval(() => {
    if (isOpen() && socket.writable) socket.write(HEAD[at++ % HEAD.length] ?? 'x');
    else clearInterval(timer);
  }, A_BYTE_EVERY_MS);
}

async function ended(all: readonly Watched[]): Promise<void> {
  await vi.waitFor(() => expect(all.filter(({ isOpen }) => isOpen())).toHaveLength(0));
}

async function answered(all: readonly Watched[], times: number): Promise<void> {
  await vi.waitFor(
    () => {
      const counts = all.map(({ text }) => text().split('HTTP/1.1 200 OK').length - 1);
      expect(counts).toEqual(all.map(() => times));
    },
    { interval: 20 },
  );
}

it('D2-07: hundreds of idle connections do not slow down others, and each of them continues to work', async () => {
  await using fixture = await startFixture({ headMs: NEVER_MS, idleMs: NEVER_MS, checkEveryMs: NEVER_MS });
  const idle = Array.from({ length: CONNECTIONS }, () => watched(fixture.url));
  for (const { socket } of idle) socket.write(KEPT);
  await answered(idle, 1);
  const others = await Promise.all(Array.from({ length: 20 }, () => sendRaw(fixture.url, request('GET', '/x'))));
  expect(new Set(others.map(({ status }) => status))).toEqual(new Set([200]));
  expect(idle.every(({ isOpen }) => isOpen())).toBe(true);
  for (const { socket } of idle) socket.write(KEPT);
  await answered(idle, 2);
  expect(statusesOf(fixture)).toEqual(Array(2 * CONNECTIONS + others.length).fill(200));
  for (const { socket } of idle) socket.destroy();
});

it('an idle connection is closed silently after its timeout, which its client knows from Keep-Alive', async () => {
  await using fixture = await startFixture({ headMs: NEVER_MS, idleMs: 1_000, checkEveryMs: NEVER_MS });
  const idle = watched(fixture.url);
  idle.socket.write(KEPT);
  await vi.waitFor(() => expect(idle.isOpen()).toBe(false));
  expect(idle.text()).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  expect(idle.text()).toMatch(/\r\nKeep-Alive: timeout=1\r\n/i);
  expect(idle.text()).toMatch(/\r\n\r\nok$/);
});

it('DG-08: a running response and a WebSocket stay open beyond every idle timeout', async () => {
  const open = new Set<Writable>();
  await using fixture = await startFixture({ headMs: 300, idleMs: 300, checkEveryMs: 20 }, ({ req, res, upgrade }) => {
    if (req.url === '/x') return void res.end('ok');
    open.add(upgrade?.socket ?? res);
    if (upgrade) upgrade.socket.write('HTTP/1.1 101 Switching Protocols\r\n\r\n');
    else res.write('first');
  });
  const [stream, socket, idle, silent] = [0, 1, 2, 3].map(() => watched(fixture.url));
  stream?.socket.write(request('GET', '/stream'));
  socket?.socket.write(request('GET', '/socket', UPGRADE));
  await vi.waitFor(() => expect(open.size).toBe(2));
  idle?.socket.write(KEPT);
  await vi.waitFor(() => expect([idle?.isOpen(), silent?.isOpen()]).toEqual([false, false]));
  for (const answer of open) answer.write('last');
  await vi.waitFor(() => {
    expect([stream?.text(), socket?.text()]).toEqual([
      expect.stringContaining('last'),
      expect.stringContaining('last'),
    ]);
  });
  expect([stream?.isOpen(), socket?.isOpen()]).toEqual([true, true]);
  for (const answer of open) answer.destroy();
});

it('D2-13: a request head has a minute, and a connection is kept longer than a load balancer keeps it', () => {
  const server = ingress({} as never);
  expect(server.keepAliveTimeout).toBeGreaterThan(60_000);
  expect([server.headersTimeout, server.requestTimeout > 0]).toEqual([60_000, true]);
});

it('D2-13: heads sent byte by byte are rejected after their timeout, and other requests are answered meanwhile', async () => {
  await using fixture = await startFixture(TIMES);
  const slow = Array.from({ length: SLOW }, () => watched(fixture.url));
  for (const one of slow) drip(one);
  const statuses: number[] = [];
  while (slow.some(({ isOpen }) => isOpen())) {
    statuses.push((await sendRaw(fixture.url, request('GET', '/x'))).status);
  }
  expect(new Set(statuses)).toEqual(new Set([200]));
  for (const { text } of slow) expect(text()).toMatch(REFUSED);
  // What is no request has no record.
  expect(statusesOf(fixture)).toEqual(statuses);
});

it('D2-13: a connection on which nothing is sent is closed too', async () => {
  await using fixture = await startFixture(TIMES);
  const silent = Array.from({ length: SLOW }, () => watched(fixture.url));
  await ended(silent);
  for (const { text } of silent) expect(text()).toMatch(REFUSED);
});

it('D2-13: the second head of a connection has the full timeout, however long the connection was idle', async () => {
  await using fixture = await startFixture(TIMES);
  const kept = watched(fixture.url);
  const ask = request('GET', '/x', { Connection: 'keep-alive' });
  kept.socket.write(ask);
  await vi.waitFor(() => expect(kept.text()).toMatch(/ok$/));
  // One that came later and says nothing has had its time.
  await ended([watched(fixture.url)]);
  expect(kept.isOpen()).toBe(true);
  kept.socket.write(ask);
  await vi.waitFor(() => expect(kept.text().match(/HTTP\/1\.1 200/g)).toHaveLength(2));
  drip(kept);
  await ended([kept]);
  expect(kept.text().slice(kept.text().lastIndexOf('HTTP/1.1'))).toMatch(REFUSED);
});

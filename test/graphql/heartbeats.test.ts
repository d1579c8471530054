import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { WebSocket } from 'ws';
import { type Fixture, startFixtureOn, until } from '../support/graphql/fixture.ts';
import { closeSockets, openSocket } from '../support/graphql/sockets.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { scratchDatabase } from '../support/harness/databases.ts';

/** How often idle connections are pinged: more often than any proxy on the way gives one up. */
const PING_MS = 12_000;
const UPDATES = 'subscription { transactionUpdates { cursor transaction { error } } }';
const MEBIBYTE = 1024 ** 2;

const database = beforeTests(scratchDatabase);
let fixture: Fixture;
const sockets: Socket[] = [];

beforeEach(async () => {
  fixture = await startFixtureOn(database);
  await fixture.register('t');
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
});
afterEach(async () => {
  vi.useRealTimers();
  for (const socket of sockets.splice(0)) socket.destroy();
  closeSockets();
  await fixture[Symbol.asyncDispose]();
});

/** Asks for a stream; `text` has what has come, chunk by chunk as they were sent. */
async function eventStream() {
  const { hostname, port, host } = new URL(fixture.url);
  const socket: Socket = connect({ host: hostname, port: Number(port) });
  sockets.push(socket);
  const body = JSON.stringify({ query: UPDATES });
  socket.write(
    `POST /graphql HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${fixture.token}\r\n` +
      `Content-Type: application/json\r\nAccept: text/event-stream\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  const stream = { socket, text: '', isClosed: false };
  socket.setEncoding('latin1').on('data', (chunk) => {
    stream.text += chunk;
  });
  socket.on('error', () => undefined);
  socket.on('close', () => {
    stream.isClosed = true;
  });
  await until(() => comments(stream.text) === 1);
  return stream;
}

function comments(text: string): number {
  return text.split('\n:\n').length - 1;
}

async function acknowledged(options: { autoPong?: boolean } = {}) {
  const { socket, received } = await openSocket(fixture, fixture.token, options);
  const seen = { pings: 0 };
  socket.on('ping', () => {
    seen.pings += 1;
  });
  return { socket, received, seen };
}

/** Sends large pings until `isFull`, however many the kernel's buffers take before. @returns how many it has sent. */
async function pinged(socket: WebSocket, isFull: () => boolean): Promise<number> {
  const ping = JSON.stringify({ type: 'ping', payload: { filler: 'x'.repeat(60_000) } });
  let sent = 0;
  while (!isFull()) {
    socket.send(ping);
    sent += 1;
    await nextTurn();
  }
  return sent;
}

/** Waits until what a client has sent has been read. */
async function answered({ socket, received }: Awaited<ReturnType<typeof acknowledged>>): Promise<void> {
  const { length } = received;
  socket.send('{"type":"ping"}');
  await until(() => received.length > length);
}

describe('idle connections', () => {
  it('DG-08: an event stream gets a comment every 12 s, for as long as it is open', async () => {
    const stream = await eventStream();
    for (let ping = 2; ping < 12; ping += 1) {
      vi.advanceTimersByTime(PING_MS);
      await until(() => comments(stream.text) === ping);
    }
    await fixture.notify('t', 1);
    await until(() => stream.text.includes('"cursor":"1"'));
    expect(stream.isClosed).toBe(false);
    stream.socket.destroy();
    await until(() => vi.getTimerCount() === 0);
  });

  it('DG-08: a WebSocket gets a ping every 12 s, and stays open if it answers', async () => {
    const client = await acknowledged();
    for (let ping = 1; ping < 10; ping += 1) {
      vi.advanceTimersByTime(PING_MS);
      await until(() => client.seen.pings === ping);
      await answered(client);
    }
    expect(client.socket.readyState).toBe(WebSocket.OPEN);
    client.socket.terminate();
    await until(() => vi.getTimerCount() === 0);
  });

  it('DG-08: a WebSocket that has not answered a ping before the next one is closed', async () => {
    const [silent, lively] = [await acknowledged({ autoPong: false }), await acknowledged()];
    const closed = once(silent.socket, 'close');
    vi.advanceTimersByTime(PING_MS);
    await until(() => silent.seen.pings + lively.seen.pings === 2);
    await answered(silent);
    await answered(lively);
    vi.advanceTimersByTime(PING_MS);
    expect((await closed)[0]).toBe(1006);
    await answered(lively);
  });
});

describe('connections whose client does not read', () => {
  it('D6-19: an event stream that reads nothing between two pings is closed', async () => {
    await using lively = await fixture.stream(UPDATES);
    const stalled = await eventStream();
    await until(() => fixture.streams.load.streams === 2);
    stalled.socket.pause();
    for (let at = 0; fixture.streams.load.streams === 2; at += 1) {
      await fixture.register(`large-${at}`);
      await fixture.notify(`large-${at}`, 1, { error: 'x'.repeat(200_000) });
      expect(await lively.next()).toMatchObject({ event: 'next' });
    }
    vi.advanceTimersByTime(PING_MS);
    // Whoever reads has what came after its ping.
    await fixture.register('later');
    await fixture.notify('later', 1);
    expect(await lively.next()).toMatchObject({ event: 'next' });
    vi.advanceTimersByTime(PING_MS);
    stalled.socket.resume();
    await until(() => stalled.isClosed);
    expect(stalled.text).not.toContain('slow_consumer');
    await fixture.notify('t', 1);
    expect(await lively.next()).toMatchObject({ event: 'next' });
    await lively[Symbol.asyncDispose]();
    await until(() => vi.getTimerCount() === 0);
  });

  it('D6-19: a WebSocket that sends without reading is no longer read from, and closed at the ping after the next', async () => {
    const accepted: Socket[] = [];
    const accept = (message: unknown) => void accepted.push((message as { socket: Socket }).socket);
    subscribe('net.server.socket', accept);
    const { socket } = await acknowledged();
    unsubscribe('net.server.socket', accept);
    const closed = once(socket, 'close');
    socket.pause();
    const [served] = accepted;
    await pinged(socket, () => (served?.writableLength ?? 0) > MEBIBYTE);
    vi.advanceTimersByTime(PING_MS);
    vi.advanceTimersByTime(PING_MS);
    expect(served?.writableLength).toBeLessThan(2 * MEBIBYTE);
    socket.resume();
    expect((await closed)[0]).toBe(1006);
  });

  it('D6-19: a WebSocket that reads late gets every response', async () => {
    const { socket, received } = await acknowledged();
    socket.pause();
    const sent = await pinged(socket, () => socket.bufferedAmount > MEBIBYTE);
    socket.resume();
    await until(() => received.length === sent);
    expect(socket.readyState).toBe(WebSocket.OPEN);
  });
});

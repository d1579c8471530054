import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { sender, textFrame } from '../../src/lib/fast/ws-frames.ts';
import { sender as senderOfWs } from './library/ws-frames.ts';

/** A socket whose reader takes a write only when it is told to. */
function slowSocket(readyState: number = WebSocket.OPEN) {
  const writes: Buffer[] = [];
  const taking: (() => void)[] = [];
  const raw = new Duplex({
    highWaterMark: 1_000,
    read() {},
    write(chunk: Buffer, _encoding, taken) {
      writes.push(chunk);
      taking.push(taken);
    },
  });
  const send = sender({ readyState } as WebSocket, raw);
  return { raw, send, writes, take: () => taking.shift()?.() };
}

describe('what sends messages to a socket', () => {
  it('sends a message in one write, and goes on while the socket has room', () => {
    const { send, writes } = slowSocket();
    expect(send([Buffer.from('{"a":'), Buffer.from('1}')])).toBeUndefined();
    expect(writes).toEqual([Buffer.from('\x81\x07{"a":1}', 'latin1')]);
  });

  it('D6-19: waits for a slow reader, so that what it leaves unsent stays where it is counted', async () => {
    const { send, take } = slowSocket();
    let isOut = false;
    const sent = send([Buffer.alloc(2_000)])?.then(() => {
      isOut = true;
    });
    await new Promise(setImmediate);
    expect(isOut).toBe(false);
    take();
    await sent;
    expect(isOut).toBe(true);
  });

  it('leaves nobody waiting for a socket that has closed, and writes nothing behind a close', async () => {
    const { send, raw } = slowSocket();
    const sent = send([Buffer.alloc(2_000)]);
    raw.destroy();
    await sent;
    expect(send([Buffer.alloc(2_000)])).toBeUndefined();
    const closing = slowSocket(WebSocket.CLOSING);
    closing.send([Buffer.from('late')]);
    expect(closing.writes).toEqual([]);
  });
});

describe('the frame of a message', () => {
  it.each([
    [0, '8100'],
    [125, '817d'],
    [126, '817e007e'],
    [65_535, '817effff'],
    [65_536, '817f0000000000010000'],
  ])('RFC 6455 section 5.2: of %i bytes begins with %s', (length, head) => {
    const payload = Buffer.alloc(length, 'x');
    const frame = textFrame([payload.subarray(0, 7), payload.subarray(7)]);
    expect(frame.toString('hex', 0, head.length / 2)).toBe(head);
    expect(frame.subarray(head.length / 2)).toEqual(payload);
  });
});

describe('a client of ws', () => {
  it('receives the same messages from our own sender and from that of ws, in their order', async () => {
    await using server = await listeningServer();
    const client = new WebSocket(server.url);
    const received: string[] = [];
    client.on('message', (data, isBinary) => received.push(`${isBinary} ${data}`));
    const [socket, raw] = await server.opened;
    const pieces = [0, 1, 125, 126, 65_535, 65_536, 300_000].map((length) => [
      Buffer.from('{"text":"é'),
      Buffer.alloc(length, 'x'),
      Buffer.from('€"}'),
    ]);
    for (const message of pieces) {
      await sender(socket, raw)(message);
      await senderOfWs(socket, raw)(message);
    }
    await expect.poll(() => received.length).toBe(2 * pieces.length);
    const texts = pieces.map((message) => `false ${Buffer.concat(message)}`);
    expect(received).toEqual(texts.flatMap((text) => [text, text]));
    client.terminate();
  });
});

/** A server of ws; `opened` is the first socket, and the connection below it. */
async function listeningServer() {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false });
  const opened = once(server, 'connection').then(([socket, { socket: raw }]) => [socket, raw] as [WebSocket, Socket]);
  await once(server, 'listening');
  const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, opened, [Symbol.asyncDispose]: async () => void server.close() };
}

import { Duplex } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { sender, textFrame } from '../../src/faces/graphql/sockets/sockets.ts';

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

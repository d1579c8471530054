import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { Writable } from 'node:stream';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Capture, recordedBytes } from '../../src/gateway/exchange/capture.ts';
import { MemoryAccounts } from '../../src/platform/held-memory.ts';

const KEPT_BYTES = 256 * 1024;

function stream() {
  const res = silent();
  const capture = new Capture(res.req, res);
  capture.install((_aborted, kept) => kept());
  return { res, capture };
}

const pieces = fc.array(
  fc.record({ bytes: fc.uint8Array({ minLength: 1, maxLength: 50_000 }), isShared: fc.boolean() }),
  { maxLength: 20 },
);

it('D2-24: whichever chunks of a stream are shared, its record has the sent bytes, up to 256 KiB, and their length', () => {
  fc.assert(
    fc.property(pieces, fc.boolean(), (written, endsShared) => {
      const { res, capture } = stream();
      for (const { bytes, isShared } of written) {
        if (isShared) capture.writeShared(Buffer.from(bytes));
        else res.write(bytes);
      }
      if (endsShared) capture.endShared(Buffer.from('!'));
      else res.end(Buffer.from('!'));
      res.end('ignored');
      const sent = Buffer.concat([...written.map(({ bytes }) => bytes), Buffer.from('!')]);
      expect(Buffer.from(capture.response.content)).toEqual(sent.subarray(0, KEPT_BYTES));
      expect(capture.response.totalBytes).toBe(sent.length);
      expect(capture.response.truncated).toBe(sent.length > KEPT_BYTES);
    }),
  );
});

it('D2-24: a thousand streams with the same content keep no copies of it', () => {
  const shared = Buffer.alloc(64 * 1024);
  const before = process.memoryUsage().arrayBuffers;
  const captures = Array.from({ length: 1_000 }, silent).map((res) => new Capture(res.req, res));
  for (const capture of captures) for (let piece = 0; piece < 8; piece += 1) capture.writeShared(shared);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(16 * 1024 * 1024);
  expect(captures.at(-1)?.response.totalBytes).toBe(8 * shared.length);
  expect(captures.at(-1)?.response.truncated).toBe(true);
});

it('D6-25: what records keep of shared bytes is charged once, until the last of their streams has closed', () => {
  const accounts = new MemoryAccounts(1024 * 1024 * 1024);
  const recorded = recordedBytes(Buffer.alloc(1024 * 1024));
  expect(recorded.value.buffer.byteLength).toBe(KEPT_BYTES);
  const streams = Array.from({ length: 3 }, () => {
    const res = silent();
    const capture = new Capture(res.req, res);
    capture.install((_aborted, onPersisted) => onPersisted());
    const bytes = Buffer.alloc(1024 * 1024);
    const held = accounts.open('node');
    for (let piece = 0; piece < 3; piece += 1) capture.writeShared(bytes, recorded, held);
    return res;
  });
  expect(accounts.held('node')).toBe(KEPT_BYTES);
  const [last, ...others] = streams;
  for (const res of others) res.emit('close');
  expect(accounts.held('node')).toBe(KEPT_BYTES);
  last?.emit('close');
  expect(accounts.held('node')).toBe(0);
});

it('D6-25: what is kept for records makes the newest requests of its account leave', () => {
  const accounts = new MemoryAccounts(4 * KEPT_BYTES);
  const opened = Array.from({ length: 6 }, () => {
    const res = silent();
    const held = accounts.open('node');
    const bytes = Buffer.alloc(KEPT_BYTES);
    new Capture(res.req, res).writeShared(bytes, recordedBytes(bytes), held);
    return held;
  });
  expect(opened.some(({ refusal }) => refusal)).toBe(true);
  expect(opened[0]?.refusal).toBeUndefined();
});

it('D6-25: what comes after the connection has closed is neither recorded nor charged', () => {
  const accounts = new MemoryAccounts(1024 * 1024 * 1024);
  const res = silent();
  const capture = new Capture(res.req, res);
  if (res.socket) res.detachSocket(res.socket);
  const bytes = Buffer.alloc(1024);
  let taken = 0;
  capture.writeShared(bytes, recordedBytes(bytes), accounts.open('node'), () => {
    taken += 1;
  });
  expect([taken, accounts.held('node'), capture.response.totalBytes]).toEqual([1, 0, 0]);
});

/** A response whose connection takes everything. */
function silent(): ServerResponse {
  const res = new ServerResponse(new IncomingMessage(new Socket()));
  const taking = new Writable({ write: (_chunk, _encoding, done) => done() });
  res.assignSocket(Object.assign(taking, { setTimeout: () => taking }) as unknown as Socket);
  return res;
}

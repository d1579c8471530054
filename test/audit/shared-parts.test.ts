import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Capture } from '../../src/gateway/exchange/capture.ts';

const KEPT_BYTES = 256 * 1024;

function stream() {
  const req = new IncomingMessage(new Socket());
  const res = new ServerResponse(req);
  const capture = new Capture(req, res);
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
  const captures = Array.from({ length: 1_000 }, () => new Capture(new IncomingMessage(new Socket()), silent()));
  for (const capture of captures) for (let piece = 0; piece < 8; piece += 1) capture.writeShared(shared);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(16 * 1024 * 1024);
  expect(captures.at(-1)?.response.totalBytes).toBe(8 * shared.length);
  expect(captures.at(-1)?.response.truncated).toBe(true);
});

/** A response that sends nothing. */
function silent(): ServerResponse {
  const res = new ServerResponse(new IncomingMessage(new Socket()));
  res.write = () => true;
  return res;
}

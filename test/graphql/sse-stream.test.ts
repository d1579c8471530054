import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import type { ExecutionResult } from 'graphql';
import { afterEach, expect, it } from 'vitest';
import { InvalidTokenError, type Principal } from '../../src/access/identity/callers.ts';
import type { ErrorMask } from '../../src/api/graphql/execution/error-masking.ts';
import { SharedResults } from '../../src/api/graphql/execution/shared-results.ts';
import { SseStream, SseStreams } from '../../src/api/graphql/execution/sse-streams.ts';
import { Capture } from '../../src/gateway/exchange/capture.ts';
import type { Exchange } from '../../src/gateway/exchange/exchange.ts';
import { ENDLESS } from '../support/harness/endless.ts';

const mask = {
  result: async (result) => result,
  error: () => {
    throw new Error('no error is expected');
  },
} as Pick<ErrorMask, 'result' | 'error'> as ErrorMask;

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

/** Results that are made as they are taken, and counted. */
function results(data: string) {
  const state = { taken: 0, isGivenUp: false };
  const iterator: AsyncIterator<ExecutionResult> = {
    async next() {
      if (state.isGivenUp) return { done: true, value: undefined };
      state.taken += 1;
      return { done: false, value: { data: { text: data } } };
    },
    async return() {
      state.isGivenUp = true;
      return { done: true, value: undefined };
    },
  };
  return { state, iterator };
}

/** A request that has come in, and its client. */
async function request(): Promise<{ exchange: Exchange; res: ServerResponse; client: Socket }> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  cleanups.push(() => {
    client.destroy();
    server.close();
  });
  const asked = once(server, 'request');
  client.write('GET / HTTP/1.1\r\nhost: h\r\n\r\n');
  const [req, res] = await asked;
  return { exchange: { res, state: {}, audit: { capture: new Capture(req, res) } } as Exchange, res, client };
}

it('D6-19: a client that does not read is sent no more than its connection buffers', async () => {
  const { exchange, res, client } = await request();
  const streams = new SseStreams(ENDLESS);
  const { state, iterator } = results('x'.repeat(64 * 1024));
  streams.respond({ Response } as never, { exchange, results: iterator, mask });
  streams.run(exchange);
  let before = -1;
  await expect
    .poll(
      () => {
        const isSame = state.taken === before;
        before = state.taken;
        return isSame;
      },
      { interval: 100 },
    )
    .toBe(true);
  expect(state.taken).toBeLessThan(1_000);
  expect(res.socket?.writableNeedDrain).toBe(true);
  streams.stop();
  expect(state.isGivenUp).toBe(true);
  // What it has not read is sent yet.
  expect(streams.size).toBe(1);
  client.destroy();
  await expect.poll(() => streams.size).toBe(0);
});

it('D2-29: a client that does not read is disconnected when its token is revoked', async () => {
  const { exchange, res } = await request();
  const principal = { subject: 'somebody' } as Principal;
  let end: () => void = () => undefined;
  let isWatched = true;
  const streams = new SseStreams({
    watch: (watched, _request, onEnd) => {
      expect(watched).toBe(principal);
      end = () => onEnd(new InvalidTokenError('revoked'));
      return () => {
        isWatched = false;
      };
    },
  });
  const { state, iterator } = results('x'.repeat(64 * 1024));
  Object.assign(exchange.state, { principal });
  streams.respond({ Response } as never, { exchange, results: iterator, mask });
  streams.run(exchange);
  await expect.poll(() => res.socket?.writableNeedDrain).toBe(true);
  end();
  expect([state.isGivenUp, isWatched, streams.size]).toEqual([true, false, 1]);
  await expect.poll(() => streams.size).toBe(0);
});

it('DG-08: a stream whose client disconnects before its first byte is closed', async () => {
  const { exchange, res, client } = await request();
  const streams = new SseStreams(ENDLESS);
  const { state, iterator } = results('x');
  const closed = once(res, 'close');
  streams.respond({ Response } as never, { exchange, results: iterator, mask });
  expect(streams.size).toBe(1);
  client.destroy();
  await closed;
  expect(state).toEqual({ taken: 0, isGivenUp: true });
  expect(streams.size).toBe(0);
  const late = results('x');
  streams.respond({ Response } as never, { exchange, results: late.iterator, mask });
  expect(late.state.isGivenUp).toBe(true);
});

it('DG-08: a stream ends with its connection, and sends each event in one chunk', async () => {
  const { exchange, client } = await request();
  const streams = new SseStreams(ENDLESS);
  let left = 2;
  const iterator: AsyncIterator<ExecutionResult> = {
    next: async () => (left-- > 0 ? { done: false, value: { data: { left } } } : { done: true, value: undefined }),
  };
  let received = '';
  client.setEncoding('utf8').on('data', (text) => {
    received += text;
  });
  streams.respond({ Response } as never, { exchange, results: iterator, mask });
  streams.run(exchange);
  await once(client, 'end');
  const [head = '', body] = received.split('\r\n\r\n');
  expect(head.toLowerCase()).toContain('connection: close');
  expect(head.toLowerCase()).not.toContain('transfer-encoding');
  expect(body).toBe(
    ':\n\nevent: next\ndata: {"data":{"left":1}}\n\nevent: next\ndata: {"data":{"left":0}}\n\nevent: complete\ndata:\n\n',
  );
});

it('D6-10: a cached event takes the size of its text, not of the buffer pool that it was created in', async () => {
  const event = { seq: 7n };
  const result = await new SharedResults().shared(event, 'all', async () => ({ data: { id: 'é' } }));
  const written: Buffer[] = [];
  const res = { on: () => res, removeHeader: () => undefined, writeHead: () => undefined, write, end: write };
  function write(chunk: Buffer): void {
    written.push(chunk);
  }
  const writeShared: Capture['writeShared'] = (chunk, _recorded, _held, onTaken) => {
    write(chunk);
    onTaken?.();
  };
  const results = [result, result].values();
  const stream = new SseStream({
    results: { next: async () => results.next() },
    mask: { result: (one: ExecutionResult) => one } as unknown as ErrorMask,
    exchange: { res, state: {}, audit: { capture: { writeShared } } } as unknown as Exchange,
    watch: ENDLESS,
    onClose: () => undefined,
  });
  stream.run();
  await expect.poll(() => written.length).toBe(4);
  const [, first, second] = written;
  expect(first?.toString()).toBe('event: next\nid: 7\ndata: {"data":{"id":"é"}}\n\n');
  expect(first?.buffer.byteLength).toBe(first?.length);
  // All who are told it are told the same bytes.
  expect(second).toBe(first);
});

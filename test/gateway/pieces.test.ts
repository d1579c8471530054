import { once } from 'node:events';
import { Agent, createServer, get, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Writable } from 'node:stream';
import { setImmediate as nextTick } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { sendBody, sendPieces } from '../../src/gateway/exchange/responses.ts';
import { jsonSlices, SLICE_LENGTH } from '../../src/lib/yielding.ts';

const ROOM = 3;

/** A connection that takes bytes only when its client reads. */
function connection() {
  const waiting: (() => void)[] = [];
  const state = { bytes: 0, writes: [] as number[] };
  const writable = new Writable({
    highWaterMark: ROOM * SLICE_LENGTH,
    write(chunk: Buffer, _encoding, taken) {
      state.writes.push(chunk.length);
      state.bytes += chunk.length;
      waiting.push(taken);
    },
  });
  return { res: writable as unknown as ServerResponse, writable, state, read: () => waiting.shift()?.() };
}

async function ticks(count: number): Promise<void> {
  for (let tick = 0; tick < count; tick += 1) await nextTick();
}

function counted(total: number) {
  const state = { made: 0 };
  function* pieces() {
    for (; state.made < total; ) {
      state.made += 1;
      yield 'x'.repeat(SLICE_LENGTH);
    }
  }
  return { state, pieces: pieces() };
}

it('for a client that does not read, no more chunks are made than its connection buffers', async () => {
  const { res, state, read, writable } = connection();
  const { state: made, pieces } = counted(20);
  const sent = sendPieces(res, pieces);
  await ticks(100);
  expect(made.made).toBe(ROOM);
  while (!writable.writableFinished) {
    read();
    await ticks(2);
  }
  await sent;
  expect([made.made, state.bytes]).toEqual([20, 20 * SLICE_LENGTH]);
});

it('a client that disconnects stops the chunks', async () => {
  const { res, writable } = connection();
  const { state: made, pieces } = counted(20);
  const sent = sendPieces(res, pieces);
  await ticks(10);
  writable.destroy();
  await sent;
  expect(made.made).toBe(ROOM);
});

it('other work runs between two chunks', async () => {
  const { res, read, writable } = connection();
  const { state: made, pieces } = counted(10);
  const reading = setInterval(read, 0);
  const sent = sendPieces(res, pieces);
  const seen = new Set<number>();
  while (!writable.writableEnded) {
    seen.add(made.made);
    await nextTick();
  }
  await sent;
  clearInterval(reading);
  expect([...seen].filter((count) => count > 0)).toEqual(Array.from({ length: 10 }, (_, at) => at + 1));
});

it.each([
  [SLICE_LENGTH, 1],
  [SLICE_LENGTH + 1, 2],
  [10 * SLICE_LENGTH, 10],
])('a body of %i bytes is sent in %i writes', async (bytes, writes) => {
  const { res, state, read, writable } = connection();
  const sent = sendBody(res, Buffer.alloc(bytes, 'x'));
  while (!writable.writableFinished) {
    read();
    await nextTick();
  }
  await sent;
  expect([state.writes.length, state.bytes]).toEqual([writes, bytes]);
});

it('an open connection keeps nothing of a long body after it was sent', async () => {
  const made: WeakRef<object>[] = [];
  const kept: ServerResponse[] = [];
  const server = createServer((_req, res) => {
    const page = { rows: Array.from({ length: 4 }, () => 'x'.repeat(SLICE_LENGTH)) };
    made.push(new WeakRef(page));
    kept.push(res);
    void sendPieces(res, jsonSlices(page));
  }).listen(0);
  await once(server, 'listening');
  const agent = new Agent({ keepAlive: true });
  const [res] = await once(get({ agent, port: (server.address() as AddressInfo).port }), 'response');
  await once(res.resume(), 'end');
  setFlagsFromString('--expose-gc');
  for (let tries = 0; tries < 3; tries += 1) {
    await nextTick();
    runInNewContext('gc')();
  }
  expect([kept.length, made.map((page) => page.deref())]).toEqual([1, [undefined]]);
  agent.destroy();
  server.close();
});

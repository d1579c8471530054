import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { print } from 'graphql';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { WebSocket } from 'ws';
import { TransactionUpdatesDocument } from '../graphql/generated/graphql.ts';
import { type Portcullis, startPortcullis } from '../support/harness.ts';
import { hasGot, type Live, overSocket, overSse, registered } from '../support/realtime/live.ts';

const UPDATES = print(TransactionUpdatesDocument);
/** What one event takes, about. */
const EVENT_BYTES = 200_000;
/** Beyond what the subscriber's queue may hold: a frame that is being written, and one behind it. */
const MOST_WRITTEN_BYTES = 3 * EVENT_BYTES;

let p: Portcullis;
let token: string;
const accepted = new Set<Socket>();
const accept = (message: unknown) => void accepted.add((message as { socket: Socket }).socket);

beforeAll(async () => {
  subscribe('net.server.socket', accept);
  p = await startPortcullis();
  token = await p.clientToken();
});
afterAll(async () => {
  unsubscribe('net.server.socket', accept);
  await p[Symbol.asyncDispose]();
});

/** One who stops to read, and what comes when it goes on. */
interface Slow {
  localPort: number;
  /** Reads on to the end. */
  rest(): Promise<{ cursors: number[]; last: string }>;
  leave(): void;
}

async function slowOverSse(): Promise<Slow> {
  const { hostname, port, host } = new URL(p.url);
  const body = JSON.stringify({ query: UPDATES });
  const socket = connect({ host: hostname, port: Number(port) });
  await once(socket, 'connect');
  socket.write(
    `POST /graphql HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\n` +
      `Accept: text/event-stream\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
  );
  await once(socket, 'readable');
  return {
    localPort: socket.localPort ?? 0,
    async rest() {
      let text = '';
      for await (const chunk of socket.setEncoding('latin1')) text += chunk;
      const cursors = [...text.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id));
      return { cursors, last: text.slice(-400) };
    },
    leave: () => socket.destroy(),
  };
}

async function slowOverSocket(): Promise<Slow> {
  const socket = new WebSocket(`${p.url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws');
  const [[req]] = await Promise.all([once(socket, 'upgrade'), once(socket, 'open')]);
  const texts: string[] = [];
  socket.on('message', (data) => texts.push(String(data)));
  socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } }));
  await vi.waitFor(() => expect(texts.splice(0)).toHaveLength(1));
  socket.send(JSON.stringify({ type: 'subscribe', id: '1', payload: { query: UPDATES } }));
  socket.pause();
  return {
    localPort: req.socket.localPort,
    async rest() {
      socket.resume();
      await vi.waitFor(() => expect(texts.at(-1)).toContain('"type":"error"'));
      const cursors = texts.map((text) => Number(/"cursor":"(\d+)"/.exec(text)?.[1])).filter((cursor) => cursor > 0);
      return { cursors, last: texts.at(-1) ?? '' };
    },
    leave: () => socket.terminate(),
  };
}

/** The end of a connection in the service. */
function serverSide(localPort: number): Socket {
  const socket = [...accepted].find(({ remotePort }) => remotePort === localPort);
  if (!socket) throw new Error('nobody has accepted it');
  return socket;
}

const SLOW = [
  ['SSE', slowOverSse],
  ['a WebSocket', slowOverSocket],
] as const;

/** Lets large events come until `isOver`, however many the kernel's buffers take before. @returns how many came. */
async function fill(isOver: () => boolean, each: () => void): Promise<number> {
  const { transactions } = p.service.context;
  const at = '2026-11-21T10:30:00Z';
  let count = 0;
  while (!isOver()) {
    const [id] = await registered(p, 1);
    const event = { id, type: 1, status: 2, created_at: at, updated_at: at, error: 'x'.repeat(EVENT_BYTES) };
    const body = Buffer.from(JSON.stringify(event));
    await transactions.applyBatch('transactions.user', [{ body, correlationId: 'large' }]);
    count += 1;
    await vi.waitFor(() => expect(neighbours.map(({ cursors }) => cursors.length)).toEqual([count, count]));
    each();
  }
  return count;
}

let neighbours: Live[] = [];

it.each(SLOW)(
  'D6-19: over %s a subscriber that stops reading gets SLOW_CONSUMER and is closed; the others continue',
  async (_over, open) => {
    await using stack = new AsyncDisposableStack();
    neighbours = [stack.use(await overSse(p, { token })), stack.use(await overSocket(p, { token }))];
    const { streams } = p.service.context;
    const slow = await open();
    stack.defer(() => slow.leave());
    await vi.waitFor(() => expect(streams.load.streams).toBe(3));
    const written = serverSide(slow.localPort);
    let mostWritten = 0;
    const count = await fill(
      () => streams.load.streams === 2,
      () => {
        mostWritten = Math.max(mostWritten, written.writableLength);
      },
    );
    expect(mostWritten).toBeGreaterThan(0);
    expect(mostWritten).toBeLessThan(MOST_WRITTEN_BYTES);
    const { cursors, last } = await slow.rest();
    const [from = 0] = cursors;
    expect(cursors).toEqual(cursors.map((_, at) => from + at));
    expect(cursors.length).toBeLessThan(count);
    expect(last).toContain('"message":"slow_consumer"');
    expect(last).toContain('"code":"SLOW_CONSUMER"');
    const all = neighbours[0]?.cursors ?? [];
    expect(all[0]).toBe(String(from));
    for (const neighbour of neighbours) await hasGot(neighbour, all);
    expect(neighbours.flatMap(({ errors }) => errors)).toEqual([]);
  },
);

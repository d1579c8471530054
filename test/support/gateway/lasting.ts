import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { listening } from './forwarder.ts';
import { openSocket, request, UPGRADE } from './raw.ts';

/** The endpoints of `startLastingService`, for `gateway.yaml`. */
export const LASTING_ENDPOINTS = [
  {
    methods: ['GET', 'POST', 'PUT'],
    path: '/lasting/*',
    services: ['lasting'],
    tokens: ['user', 'legacy', 'discover'],
    timeout_ms: 600_000,
  },
];

/** A service whose requests last: it ends none of them, but for those to `/lasting/answer`, which it answers when told. */
export interface LastingService extends AsyncDisposable {
  url: string;
  /** The number of requests and WebSockets that have arrived, and those that are still open. */
  arrived: number;
  open: ReadonlySet<IncomingMessage>;
  /** Answers the requests to `/lasting/answer` that wait. */
  answer(): void;
}

const HEADS: Readonly<Record<string, Record<string, string>>> = {
  events: { 'Content-Type': 'text/event-stream' },
  download: { 'Content-Type': 'application/octet-stream' },
  sized: { 'Content-Type': 'application/octet-stream', 'Content-Length': '1000000' },
};

export async function startLastingService(): Promise<LastingService> {
  const waiting: ServerResponse[] = [];
  const sockets = new Set<Duplex>();
  const open = new Set<IncomingMessage>();
  const count = (req: IncomingMessage, lasting: ServerResponse | Duplex) => {
    service.arrived += 1;
    open.add(req);
    lasting.once('close', () => open.delete(req));
  };
  const server = createServer((req, res) => {
    count(req, res);
    req.resume().on('error', () => undefined);
    const name = /^\/lasting\/(\w+)/.exec(req.url ?? '')?.[1] ?? '';
    if (name === 'answer') waiting.push(res);
    const head = HEADS[name];
    if (head) res.writeHead(200, head).write('data: 1\n\n');
  });
  server.on('upgrade', (req, socket) => {
    count(req, socket);
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    socket.once('end', () => socket.end()).resume();
    socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n');
  });
  const service: LastingService = {
    url: await listening(server),
    arrived: 0,
    open,
    answer: () => {
      for (const res of waiting.splice(0)) res.end('answered');
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return service;
}

const CHUNKED = { 'Transfer-Encoding': 'chunked' };

/** Requests that last, by their kind: the method, the path, further headers, and what is sent of the body. */
export const LASTING: readonly [kind: string, ...ask: [string, string, Record<string, string>, string]][] = [
  ['a WebSocket', 'GET', '/lasting/websocket', UPGRADE, ''],
  ['an event stream', 'GET', '/lasting/events', {}, ''],
  ['an event stream by POST', 'POST', '/lasting/events', { 'Content-Length': '2' }, '{}'],
  ['a download', 'GET', '/lasting/download', {}, ''],
  ['a download of a known length', 'GET', '/lasting/sized', {}, ''],
  ['a download while the body is sent', 'POST', '/lasting/download', CHUNKED, '3\r\nabc\r\n'],
  ['an upload', 'POST', '/lasting/upload', CHUNKED, '3\r\nabc\r\n'],
  ['an upload of a known length', 'POST', '/lasting/upload', { 'Content-Length': '1000000' }, 'abc'],
  ['a long poll', 'GET', '/lasting/poll', {}, ''],
];

/** A request that lasts, as its client sees it. */
export interface Lasting {
  kind: string;
  socket: Socket;
  text: string;
  /** When the connection was closed, by `performance.now()`; undefined while it is open. */
  closedAt: number | undefined;
}

/** Sends a request that lasts with a token. */
export function last(url: string, token: string, [kind, method, path, headers, body]: (typeof LASTING)[number]) {
  const socket = openSocket(url);
  const lasting: Lasting = { kind, socket, text: '', closedAt: undefined };
  socket.setEncoding('latin1').on('data', (text) => {
    lasting.text += text;
  });
  socket.on('error', () => undefined);
  socket.on('close', () => {
    lasting.closedAt = performance.now();
  });
  socket.write(request(method, path, { Authorization: `Bearer ${token}`, ...headers }) + body);
  return lasting;
}

import { once } from 'node:events';
import { type Client, type ClientOptions, createClient } from 'graphql-ws';
import { expect } from 'vitest';
import { WebSocket } from 'ws';

/** Where sockets are opened: a service, or `/graphql` of one. */
interface Target {
  url: string;
}

interface Message {
  type: string;
  id?: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into messages of many shapes.
  payload?: any;
}

const opened = new Set<WebSocket>();

/** Terminates every socket that was opened. */
export function closeSockets(): void {
  for (const socket of opened) socket.terminate();
  opened.clear();
}

/** Opens a socket of graphql-transport-ws without a client library, so that nothing stands between a test and what is sent. */
export async function rawSocket(target: Target, options: WebSocket.ClientOptions = {}) {
  const socket = new WebSocket(socketUrl(target), 'graphql-transport-ws', options);
  opened.add(socket);
  const received: Message[] = [];
  /** The same messages as they were sent. */
  const texts: string[] = [];
  socket.on('message', (data) => {
    texts.push(String(data));
    received.push(JSON.parse(String(data)));
  });
  const closed = once(socket, 'close') as Promise<[code: number, reason: Buffer]>;
  closed.catch(() => undefined);
  await once(socket, 'open');
  const send = (message: Message) => socket.send(JSON.stringify(message));
  return {
    ...{ socket, received, texts, closed, send },
    init: (token: string) => send({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } }),
    subscribe: (id: string, query: string, variables = {}) =>
      send({ type: 'subscribe', id, payload: { query, variables } }),
    [Symbol.dispose]: () => socket.terminate(),
  };
}

/** Opens a socket of one token, which is acknowledged. */
export async function openSocket(target: Target, token: string, options?: WebSocket.ClientOptions) {
  const raw = await rawSocket(target, options);
  raw.init(token);
  await once(raw.socket, 'message');
  raw.texts.length = 0;
  expect(raw.received.splice(0)).toEqual([{ type: 'connection_ack' }]);
  let serial = 0;
  const begun = (payload: object) => {
    serial += 1;
    raw.send({ type: 'subscribe', id: `operation-${serial}`, payload });
    return `operation-${serial}`;
  };
  const come = async (isLast: (message: Message) => boolean) => {
    const over = raw.closed.then(([code]) => {
      throw new Error(`closed with ${code}`);
    });
    while (!raw.received.some(isLast)) await Promise.race([once(raw.socket, 'message'), over]);
  };
  return {
    ...raw,
    /** The first message that an operation is answered with, its id apart. */
    async answerTo(query: string, variables?: object) {
      const id = begun({ query, variables });
      await come((message) => message.id === id);
      const at = raw.received.findIndex((message) => message.id === id);
      raw.send({ type: 'complete', id });
      return { ...raw.received[at], text: raw.texts[at]?.replace(id, '-') ?? '' };
    },
    /** Every message of an operation, without its id. */
    async messagesOf(payload: object) {
      const id = begun(payload);
      await come((message) => message.id === id && message.type !== 'next');
      const own = raw.received.filter((message) => message.id === id);
      return own.map(({ type, payload }) => ({ type, payload }));
    },
  };
}

/** graphql-ws, which tries a connection once. */
export function socketClient(target: Target, token: string, options: Partial<ClientOptions> = {}): Client {
  return createClient({
    url: socketUrl(target),
    webSocketImpl: WebSocket,
    connectionParams: { authorization: `Bearer ${token}` },
    retryAttempts: 0,
    ...options,
  });
}

function socketUrl({ url }: Target): string {
  return String(new URL('/graphql', url.replace('http', 'ws')));
}

import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import { Subscriber } from '../../tools/soak/subscribers.ts';

const error = (code: string) =>
  JSON.stringify({ type: 'error', id: '1', payload: [{ message: 'ended', extensions: { code } }] });

it.each<[string, (socket: WebSocket) => void, string[]]>([
  ['a stop', (socket) => socket.close(1012), []],
  ['an expired token', (socket) => socket.close(4401), []],
  ['reading too slowly', (socket) => socket.send(error('SLOW_CONSUMER')), []],
  ['a server error', (socket) => socket.close(4500), ['the socket was closed with 4500']],
  ['a broken connection', (socket) => socket.terminate(), ['the socket was closed with 1006']],
  [
    'an error message',
    (socket) => socket.send(error('INTERNAL_SERVER_ERROR')),
    ['the stream ended with the errors ["INTERNAL_SERVER_ERROR"]'],
  ],
  ['a completion', (socket) => socket.send('{"type":"complete","id":"1"}'), ['the stream was complete']],
])('a subscriber reconnects after %s, and reports only unexpected ends', async (_name, end, expected) => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', handleProtocols: () => 'graphql-transport-ws' });
  await once(server, 'listening');
  const asked: string[] = [];
  server.on('connection', (socket) => {
    socket.on('message', (data) => {
      const { type, payload } = JSON.parse(String(data));
      if (type === 'connection_init') socket.send('{"type":"connection_ack"}');
      if (type !== 'subscribe') return;
      asked.push(payload.variables.after);
      const update = { data: { transactionUpdates: { cursor: `${asked.length}` } } };
      socket.send(JSON.stringify({ type: 'next', id: '1', payload: update }));
      if (asked.length === 1) end(socket);
    });
  });
  const faults: string[] = [];
  const updates = {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    token: () => 't',
    correlationId: () => 'c',
  };
  const unexpected = (fault: string) => void faults.push(fault);
  const subscriber = new Subscriber('one', { transport: 'WebSocket', updates, after: 0n, unexpected });
  await expect.poll(() => subscriber.count, { timeout: 10_000 }).toBe(2);
  await subscriber[Symbol.asyncDispose]();
  server.close();
  expect([asked, subscriber.faults, subscriber.resumed, faults]).toEqual([['0', '1'], [], 1, expected]);
});

import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket } from 'ws';
import type { Subscriber, SubscriberOptions } from './audience.ts';
import { queryOf } from './documents.ts';

const UPDATE = /"id":"([^"]+)","status":/;
/** Nothing says that a subscription without a first state has begun. */
const BEGUN_MS = 50;

/** Subscribes over graphql-transport-ws. */
export async function openSocket({ url, token, id, onUpdate }: SubscriberOptions): Promise<Subscriber> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws', {
    perMessageDeflate: false,
  });
  const opened = Promise.withResolvers<void>();
  socket.on('error', (error) => opened.reject(error));
  socket.on('close', (code) => opened.reject(new Error(`the server has closed the socket: ${code}`)));
  socket.on('open', () => {
    socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } }));
  });
  socket.on('message', (data) => {
    const message = String(data);
    if (message.startsWith('{"type":"connection_ack"')) {
      socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload: queryOf(id) }));
      opened.resolve();
      return;
    }
    if (message.includes('"errors"') || message.includes('"type":"error"')) throw new Error(`failed: ${message}`);
    const found = UPDATE.exec(message)?.[1];
    if (found !== undefined) onUpdate(found);
  });
  await opened.promise;
  await delay(BEGUN_MS);
  return { stop: () => socket.terminate() };
}

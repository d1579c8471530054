import { connect } from 'node:net';
import type { Subscriber, SubscriberOptions } from './audience.ts';
import { queryOf } from './documents.ts';

const UPDATE = /"id":"([^"]+)","status":/g;

/**
 * Subscribes over a raw socket, since 5,000 clients of a library would take more than the server. Returns once the
 * server has sent a first event of any kind, and for a transaction of its own, its state.
 */
export async function openSse(options: SubscriberOptions & { isBare: boolean }): Promise<Subscriber> {
  const { url, token, id, onUpdate, isBare } = options;
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  const opened = Promise.withResolvers<void>();
  let pending = '';
  socket.setEncoding('latin1');
  socket.on('error', (error) => opened.reject(error));
  socket.on('close', () => opened.reject(new Error('the server has closed the stream')));
  socket.on('data', (chunk: string) => {
    const text = pending + chunk;
    const end = text.lastIndexOf('\n\n');
    if (end < 0) {
      pending = text;
      return;
    }
    pending = text.slice(end + 2);
    const events = text.slice(0, end);
    if (events.includes('"errors"')) throw new Error(`the subscription failed: ${events}`);
    const updates = events.matchAll(UPDATE);
    for (const [, found = ''] of updates) onUpdate(found);
    if (isBare || id === undefined || events.includes('"id":')) opened.resolve();
  });
  socket.write(isBare ? bareRequest(id) : graphqlRequest(id, token));
  await opened.promise;
  return { stop: () => socket.destroy() };
}

function bareRequest(id: string | undefined): string {
  return `GET /events${id === undefined ? '' : `?id=${id}`} HTTP/1.1\r\nhost: bench\r\n\r\n`;
}

function graphqlRequest(id: string | undefined, token: string | undefined): string {
  const body = JSON.stringify(queryOf(id));
  const lines = [
    'POST /graphql HTTP/1.1',
    'host: bench',
    'accept: text/event-stream',
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
    ...(token === undefined ? [] : [`authorization: Bearer ${token}`]),
  ];
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
}

import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { WebSocket } from 'ws';

/**
 * A process of subscribers: `subscriber-clients.ts URL TOKEN AFTER`, the first the gateway's, the last a cursor. Each line
 * of the standard input is a command, answered by a line of JSON: `open COUNT` opens so many more, half of them over
 * server-sent events and half over WebSockets, each on a connection of its own; `tell` tells what they have got.
 */
const [url = '', token = '', after = ''] = process.argv.slice(2);
const { hostname, port, host } = new URL(url);
const OPENED_AT_ONCE = 50;
const QUERY = `subscription ($after: String) {
  transactionUpdates(after: $after) { cursor correlationId transaction { id status } }
}`;
const payload = { query: QUERY, variables: { after } };

interface Subscriber {
  cursors: string[];
  /** When the last one came, in ms since 1970. */
  gotAtMs: number;
  isOpen: boolean;
}

const subscribers: Subscriber[] = [];

function added(): Subscriber {
  const subscriber = { cursors: [], gotAtMs: 0, isOpen: true };
  subscribers.push(subscriber);
  return subscriber;
}

function got(subscriber: Subscriber, text: string): void {
  subscriber.cursors.push(/"cursor":"(\d+)"/.exec(text)?.[1] ?? text);
  subscriber.gotAtMs = Date.now();
}

/** What a client is told whose replay has waited for long, since thousands have come at once. It asks again. */
const OVERLOADED = 'SLOW_CONSUMER';

function overSse(subscriber = added()): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const body = JSON.stringify(payload);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.write(
    `POST /graphql HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\n` +
      `Accept: text/event-stream\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  let unread = '';
  let isOverloaded = false;
  socket.setEncoding('latin1').on('data', (chunk) => {
    const blocks = (unread + chunk).split('\n\n');
    unread = blocks.pop() ?? '';
    for (const block of blocks) {
      if (block.includes(OVERLOADED)) isOverloaded = true;
      else if (block.includes('event: next')) got(subscriber, block);
      else resolve();
    }
  });
  socket.on('error', reject);
  socket.on('close', () => {
    if (isOverloaded) return resolve(overSse(subscriber));
    subscriber.isOpen = false;
    reject(new Error('closed before it was open'));
  });
  return promise;
}

function overSocket(): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const socket = new WebSocket(`${url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws', {
    perMessageDeflate: false,
  });
  const subscriber = added();
  const send = (message: object) => socket.send(JSON.stringify(message));
  socket.on('open', () => send({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } }));
  socket.on('message', (data) => {
    const text = String(data);
    if (text.includes('connection_ack')) {
      send({ type: 'subscribe', id: '1', payload });
      resolve();
    } else if (text.includes(OVERLOADED)) send({ type: 'subscribe', id: '1', payload });
    else got(subscriber, text);
  });
  socket.on('error', reject);
  socket.on('close', () => {
    subscriber.isOpen = false;
    reject(new Error('closed before it was open'));
  });
  return promise;
}

async function open(count: number): Promise<void> {
  for (let opened = 0; opened < count; opened += OPENED_AT_ONCE) {
    const batch = Array.from({ length: Math.min(OPENED_AT_ONCE, count - opened) }, (_, at) =>
      at % 2 === 0 ? overSse() : overSocket(),
    );
    await Promise.all(batch);
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const [command, count] = line.split(' ');
  if (command === 'open') await open(Number(count));
  const told = {
    open: subscribers.filter(({ isOpen }) => isOpen).length,
    /** What a subscriber has got, and how many have got just that. */
    got: Object.fromEntries(
      [...Map.groupBy(subscribers, ({ cursors }) => cursors.join())].map(([cursors, same]) => [cursors, same.length]),
    ),
    gotAtMs: command === 'tell' ? subscribers.map(({ gotAtMs }) => gotAtMs) : [],
  };
  process.stdout.write(`${JSON.stringify(told)}\n`);
}
process.exit();

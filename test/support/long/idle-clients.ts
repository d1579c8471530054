import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';

/**
 * A process of clients: `idle-clients.ts URL COUNT`. Each line of the standard input is a command, answered by a line of
 * JSON: `open` opens the connections, `ask` sends a request over each and waits for the answers, `drip` sends bytes of a
 * head that never ends until every connection is closed, `count` counts what is open.
 */
const [url = '', count = '0'] = process.argv.slice(2);
const { hostname, port, host } = new URL(url);
const OPENED_AT_ONCE = 200;
const DRIP_EVERY_MS = 5_000;
const QUESTION = `GET /health HTTP/1.1\r\nHost: ${host}\r\n\r\n`;

interface Client {
  socket: Socket;
  answers: number;
  refusals: number;
  isOpen: boolean;
}

const clients: Client[] = [];

function openOne(): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const socket = connect({ host: hostname, port: Number(port) }, resolve);
  const client: Client = { socket, answers: 0, refusals: 0, isOpen: true };
  socket.on('data', (chunk) => {
    const text = chunk.toString('latin1');
    client.answers += text.split('HTTP/1.1 200 ').length - 1;
    client.refusals += text.split(/HTTP\/1\.1 40[08] /).length - 1;
  });
  socket.on('error', reject);
  socket.on('close', () => {
    client.isOpen = false;
  });
  clients.push(client);
  return promise;
}

async function open(): Promise<void> {
  for (let opened = 0; opened < Number(count); opened += OPENED_AT_ONCE) {
    await Promise.all(Array.from({ length: Math.min(OPENED_AT_ONCE, Number(count) - opened) }, openOne));
  }
}

async function ask(): Promise<void> {
  const before = clients.reduce((sum, { answers }) => sum + answers, 0);
  const living = clients.filter(({ isOpen }) => isOpen);
  for (const { socket } of living) socket.write(QUESTION);
  const answered = () => clients.reduce((sum, { answers }) => sum + answers, 0) - before;
  while (answered() < living.filter(({ isOpen }) => isOpen).length) await delay(10);
}

async function drip(): Promise<void> {
  for (const { socket } of clients) socket.write('GET / HTTP/1.1\r\nX-Slow: ');
  while (clients.some(({ isOpen }) => isOpen)) {
    await delay(DRIP_EVERY_MS);
    for (const { socket } of clients.filter(({ isOpen }) => isOpen)) if (socket.writable) socket.write('x');
  }
}

const commands: Record<string, () => Promise<void>> = { open, ask, drip, count: async () => undefined };
for await (const line of createInterface({ input: process.stdin })) {
  await commands[line]?.();
  const told = {
    open: clients.filter(({ isOpen }) => isOpen).length,
    answers: clients.reduce((sum, { answers }) => sum + answers, 0),
    refusals: clients.reduce((sum, { refusals }) => sum + refusals, 0),
  };
  process.stdout.write(`${JSON.stringify(told)}\n`);
}
process.exit();

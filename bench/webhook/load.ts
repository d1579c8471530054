import { once } from 'node:events';
import { connect } from 'node:net';
import { atRate } from '../lib/at-rate.ts';
import { notificationBody, STEPS, transactionId } from '../lib/notifications.ts';

/** Notifications of so many transactions in turn, over keep-alive connections. */
export interface WebhookLoad {
  port: number;
  path: string;
  headers: Record<string, string>;
  connections: number;
  requests: number;
  /** At this even rate, over so many connections that are open before; otherwise one after another on each. */
  perSecond?: number | undefined;
  transactions: number;
  /** The number of the first notification: where the load before has ended. */
  first: number;
}

/** What came of a load. */
export interface Loaded {
  elapsedMs: number;
  /** Milliseconds from each request, or from when it was due, to its answer. */
  latencies: number[];
}

/** Sends a request and resolves when the answer is a 200; one at a time. */
type Connection = { send(request: string): Promise<void>; end(): void };

async function open(port: number): Promise<Connection> {
  const socket = connect(port, '127.0.0.1').setNoDelay(true).setEncoding('latin1');
  await once(socket, 'connect');
  let asked = Promise.withResolvers<void>();
  let answer = '';
  socket.on('data', (chunk: string) => {
    answer += chunk;
    if (!answer.endsWith('\r\n\r\n')) return;
    if (!answer.startsWith('HTTP/1.1 200 ')) return asked.reject(new Error(`answered ${answer}`));
    answer = '';
    asked.resolve();
  });
  socket.on('error', (error) => asked.reject(error));
  socket.on('close', () => asked.reject(new Error(`closed after ${answer}`)));
  return {
    send(request) {
      if (socket.destroyed) return Promise.reject(new Error('closed between two requests'));
      asked = Promise.withResolvers();
      socket.write(request);
      return asked.promise;
    },
    end: () => void socket.removeAllListeners('close').destroy(),
  };
}

/**
 * Run as a process of its own, with a `WebhookLoad` as JSON: prints a `Loaded`, and fails at the first answer that is not
 * a 200. It writes to bare sockets, since a client of HTTP would take as much of the machine as the servers do.
 */
async function load(asked: WebhookLoad): Promise<Loaded> {
  const { port, path, headers, connections, requests, perSecond, transactions, first } = asked;
  const fields = Object.entries({ host: `127.0.0.1:${port}`, ...headers });
  const head = `POST ${path} HTTP/1.1\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')}`;
  const latencies: number[] = [];
  const opened: Connection[] = [];
  const idle: Connection[] = [];
  const waiting: ((connection: Connection) => void)[] = [];
  let sent = 0;

  async function connection(): Promise<Connection> {
    const one = await open(port);
    opened.push(one);
    return one;
  }

  async function ask(one: Connection, dueAt?: number): Promise<void> {
    const n = first + sent++;
    const body = notificationBody(transactionId(1 + (n % transactions)), Math.floor(n / transactions) % STEPS);
    const from = dueAt ?? performance.now();
    await one.send(`${head}content-length: ${body.length}\r\n\r\n${body}`);
    latencies.push(performance.now() - from);
  }

  async function lane(): Promise<void> {
    const one = await connection();
    while (sent < requests) await ask(one);
  }

  async function onTime(dueAt: number): Promise<void> {
    // The one that has rested longest, or a server would close it.
    const one = idle.shift() ?? (await new Promise<Connection>((resolve) => waiting.push(resolve)));
    await ask(one, dueAt);
    const next = waiting.shift();
    if (next) next(one);
    else idle.push(one);
  }

  if (perSecond !== undefined) idle.push(...(await Promise.all(Array.from({ length: connections }, connection))));
  const begun = performance.now();
  if (perSecond === undefined) await Promise.all(Array.from({ length: connections }, lane));
  else await atRate(perSecond, requests, (_, dueAt) => onTime(dueAt));
  const elapsedMs = performance.now() - begun;
  for (const one of opened) one.end();
  return { elapsedMs, latencies };
}

const [, , given] = process.argv;
if (given === undefined) throw new Error('usage: load JSON');
process.stdout.write(JSON.stringify(await load(JSON.parse(given))));

import { once } from 'node:events';
import { connect } from 'node:net';
import { notificationBody, STEPS, transactionId } from '../lib/notifications.ts';

/** Notifications of so many transactions in turn, one after another on each keep-alive connection. */
export interface WebhookLoad {
  port: number;
  path: string;
  headers: Record<string, string>;
  connections: number;
  requests: number;
  transactions: number;
  /** The number of the first notification: where the load before has ended. */
  first: number;
}

/** What came of a load. */
export interface Loaded {
  elapsedMs: number;
  /** Milliseconds from each request to its answer. */
  latencies: number[];
}

/**
 * Run as a process of its own, with a `WebhookLoad` as JSON: prints a `Loaded`, and fails at the first answer that is not
 * a 200. It writes to bare sockets, since a client of HTTP would take as much of the machine as the servers do.
 */
async function load({ port, path, headers, connections, requests, transactions, first }: WebhookLoad): Promise<Loaded> {
  const fields = Object.entries({ host: `127.0.0.1:${port}`, ...headers });
  const head = `POST ${path} HTTP/1.1\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')}`;
  const latencies: number[] = [];
  let sent = 0;

  async function lane(): Promise<void> {
    const socket = connect(port, '127.0.0.1').setNoDelay(true).setEncoding('latin1');
    await once(socket, 'connect');
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    let startedAt = 0;
    let answer = '';
    function next(): void {
      if (sent === requests) {
        resolve();
        return;
      }
      const n = first + sent++;
      const body = notificationBody(transactionId(1 + (n % transactions)), Math.floor(n / transactions) % STEPS);
      startedAt = performance.now();
      socket.write(`${head}content-length: ${body.length}\r\n\r\n${body}`);
    }
    socket.on('data', (chunk: string) => {
      answer += chunk;
      if (!answer.endsWith('\r\n\r\n')) return;
      if (!answer.startsWith('HTTP/1.1 200 ')) return reject(new Error(`answered ${answer}`));
      latencies.push(performance.now() - startedAt);
      answer = '';
      next();
    });
    socket.on('error', reject).on('close', () => reject(new Error(`closed after ${answer}`)));
    next();
    await promise;
    socket.destroy();
  }

  const begun = performance.now();
  await Promise.all(Array.from({ length: connections }, lane));
  return { elapsedMs: performance.now() - begun, latencies };
}

const [, , given] = process.argv;
if (given === undefined) throw new Error('usage: load JSON');
process.stdout.write(JSON.stringify(await load(JSON.parse(given))));

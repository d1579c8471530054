import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { listening } from '../support/gateway/forwarder.ts';
import { gatewayFile } from '../support/gateway/gateway-file.ts';
import { ClientProcess } from '../support/long/client-process.ts';
import { migratedFolder } from '../support/start/folders.ts';
import { type Running, startInstance } from '../support/start/process.ts';

const IDLE = 10_000;
const SLOW = 1_000;
const STALLED = 50;
const MEBIBYTE = 1024 ** 2;
const ANSWER_BYTES = 100 * MEBIBYTE;
/** Longer than Node would keep an idle connection by itself, and as long as a load balancer may take for its next request. */
const HELD_MS = 20_000;
const MOST_BYTES_A_CONNECTION = 32 * 1024;
/** What a stalled answer may hold: buffers of the gateway and of the kernel on both sides of it. */
const MOST_BYTES_A_STALLED = 12 * MEBIBYTE;
const MOST_RESIDENT_A_STALLED = 4 * MEBIBYTE;

interface Told {
  open: number;
  answers: number;
  refusals: number;
}

const stack = new AsyncDisposableStack();
let upstream: Server;
let sentBytes = 0;
let cutAnswers = 0;
let instance: Running;

beforeAll(async () => {
  upstream = createServer((_req, res) => {
    res.once('close', () => {
      if (!res.writableFinished) cutAnswers += 1;
    });
    sendMuch(res);
  });
  const url = await listening(upstream);
  stack.defer(() => void upstream.close());
  const file = stack.use(
    await gatewayFile({ moved: url }, [
      { methods: ['GET'], path: '/v1/moved', services: ['moved'], visibility: 'public' },
    ]),
  );
  const folder = stack.use(await migratedFolder());
  instance = stack.use(await startInstance({ DATA_DIR: folder.path, GATEWAY_CONFIG: file.path }, []));
});
afterAll(() => stack.disposeAsync());

/** At the pace of its reader. */
function sendMuch(res: ServerResponse): void {
  const piece = Buffer.alloc(64 * 1024);
  let left = ANSWER_BYTES / piece.length;
  const write = () => {
    while (left > 0 && !res.destroyed) {
      left -= 1;
      sentBytes += piece.length;
      if (!res.write(piece)) return void res.once('drain', write);
    }
    res.end();
  };
  write();
}

function clientsOf(count: number): ClientProcess<Told> {
  return new ClientProcess('idle-clients.ts', instance.baseUrl, `${count}`);
}

function residentBytes(): number {
  return Number(execFileSync('ps', ['-o', 'rss=', '-p', `${instance.pid}`], { encoding: 'utf8' })) * 1024;
}

/** The statuses of requests one after the other until `until` resolves, and the 99th percentile of their times. */
async function others(until: Promise<unknown>): Promise<{ statuses: number[]; asked: number; p99Ms: number }> {
  let isOver = false;
  void until.finally(() => {
    isOver = true;
  });
  const statuses = new Set<number>();
  const times: number[] = [];
  while (!isOver) {
    const startedAt = performance.now();
    const answer = await fetch(`${instance.baseUrl}/health`);
    await answer.arrayBuffer();
    statuses.add(answer.status);
    times.push(performance.now() - startedAt);
    await delay(5);
  }
  const sorted = times.sort((one, other) => one - other);
  return {
    statuses: [...statuses],
    asked: times.length,
    p99Ms: Math.round(sorted[Math.floor(times.length * 0.99)] ?? 0),
  };
}

it('10,000 idle connections use little memory, other clients are served, and each connection still works', async () => {
  // The compiled code and the pools are there before the connections are.
  await others(delay(3_000));
  const before = residentBytes();
  await using clients = clientsOf(IDLE);
  await clients.tell('open');
  expect(await clients.tell('ask')).toEqual({ open: IDLE, answers: IDLE, refusals: 0 });
  const meanwhile = await others(delay(HELD_MS));
  const resident = residentBytes();
  const descriptors = readdirSync(`/proc/${instance.pid}/fd`).length;
  const limit = /Max open files +(\d+)/.exec(readFileSync(`/proc/${instance.pid}/limits`, 'utf8'))?.[1];
  expect(await clients.tell('ask')).toEqual({ open: IDLE, answers: 2 * IDLE, refusals: 0 });
  expect(meanwhile.statuses).toEqual([200]);
  const bytesEach = Math.round((resident - before) / IDLE);
  const report = { held: IDLE, descriptors, limit: Number(limit), bytes_each: bytesEach, ...meanwhile };
  process.stdout.write(`${JSON.stringify(report)}\n`);
  expect(bytesEach).toBeLessThan(MOST_BYTES_A_CONNECTION);
});

it('D2-13: 1,000 heads sent byte by byte are rejected at the head timeout, and other clients are served', async () => {
  await using clients = clientsOf(SLOW);
  await clients.tell('open');
  const startedAt = performance.now();
  const dripped = clients.tell('drip');
  const meanwhile = await others(dripped);
  expect(await dripped).toEqual({ open: 0, answers: 0, refusals: SLOW });
  expect(meanwhile.statuses).toEqual([200]);
  const seconds = Math.round((performance.now() - startedAt) / 1_000);
  process.stdout.write(`${JSON.stringify({ slow: SLOW, ended_after_seconds: seconds, ...meanwhile })}\n`);
});

it('D2-10 D1-13: responses that clients do not read wait at the upstream in bounded memory, and are cut at a shutdown', async () => {
  const before = residentBytes();
  const { hostname, port, host } = new URL(instance.baseUrl);
  const stalled: Socket[] = Array.from({ length: STALLED }, () => {
    const socket = connect({ host: hostname, port: Number(port) });
    socket.on('error', () => undefined).pause();
    socket.write(`GET /v1/moved HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    return socket;
  });
  await others(delay(6_000));
  const settled = sentBytes;
  const meanwhile = await others(delay(6_000));
  expect([sentBytes, cutAnswers]).toEqual([settled, 0]);
  expect(meanwhile.statuses).toEqual([200]);
  const bytesEach = Math.round(settled / STALLED);
  const residentEach = Math.round((residentBytes() - before) / STALLED);
  expect(bytesEach).toBeLessThan(MOST_BYTES_A_STALLED);
  expect(residentEach).toBeLessThan(MOST_RESIDENT_A_STALLED);
  const startedAt = performance.now();
  expect(await instance.kill('SIGTERM')).toMatchObject({ code: 0 });
  const stopSeconds = Math.round((performance.now() - startedAt) / 1_000);
  await expect.poll(() => cutAnswers).toBe(STALLED);
  for (const socket of stalled) socket.destroy();
  const report = { stalled: STALLED, sent_each: bytesEach, resident_each: residentEach, stop_seconds: stopSeconds };
  process.stdout.write(`${JSON.stringify({ ...report, ...meanwhile })}\n`);
});

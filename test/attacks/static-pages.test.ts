import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { migratedFolder } from '../support/start/folders.ts';
import { type Running, startInstance } from '../support/start/process.ts';

const UNREAD = 500;
const MEBIBYTE = 1024 ** 2;
/** What a connection may hold: its buffers, its request and its audit record, but no copy of a page. */
const MOST_BYTES_A_CONNECTION = 48 * 1024;

const stack = new AsyncDisposableStack();
const open: Socket[] = [];
let instance: Running;

beforeAll(async () => {
  const folder = stack.use(await migratedFolder());
  instance = stack.use(await startInstance({ DATA_DIR: folder.path }, []));
});
afterEach(() => {
  for (const socket of open.splice(0)) socket.destroy();
});
afterAll(() => stack.disposeAsync());

function residentBytes(): number {
  const status = readFileSync(`/proc/${instance.pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) * 1024;
}

/** Asks for a path `times` times on a connection that is never read. */
function askUnread(path: string, times: number): void {
  const { hostname, port } = new URL(instance.baseUrl);
  const socket = connect(Number(port), hostname).on('error', () => undefined);
  socket.pause().write(`GET ${path} HTTP/1.1\r\nHost: x\r\nAccept: text/html\r\n\r\n`.repeat(times));
  open.push(socket);
}

async function read(path: string): Promise<number> {
  const response = await fetch(`${instance.baseUrl}${path}`, { headers: { accept: 'text/html' } });
  return (await response.arrayBuffer()).byteLength;
}

it.each([
  ['DG-04', '/graphql', 1],
  ['4.9-04', '/swagger/swagger-ui-bundle.js', 3],
])('%s: 500 connections that never read %s, requested %i times each, hold no copy of it', async (_, path, times) => {
  for (let at = 0; at < 20; at += 1) await read(path);
  const before = residentBytes();
  for (let at = 0; at < UNREAD; at += 1) askUnread(path, times);
  await delay(5_000);
  const grown = residentBytes() - before;
  process.stdout.write(
    `${JSON.stringify({ path, bytes: await read(path), grown_mib: Math.round(grown / MEBIBYTE) })}\n`,
  );
  expect(grown).toBeLessThan(UNREAD * MOST_BYTES_A_CONNECTION + 32 * MEBIBYTE);
});

import { once } from 'node:events';
import type { Socket } from 'node:net';
import { afterEach, expect, it, vi } from 'vitest';
import { openSocket, request, sendRaw } from '../support/gateway/raw.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { startPortcullis } from '../support/harness.ts';
import { type Scrape, scrape } from '../support/observability/scrape.ts';

const PROXY = '127.0.0.9';
const p = beforeTests(() => startPortcullis({ env: { MAX_CONNECTIONS: '5', TRUST_PROXY: PROXY } }));
const open: Socket[] = [];
const eventually = (check: () => unknown) => vi.waitFor(check);

afterEach(async () => {
  for (const socket of open.splice(0)) socket.destroy();
  await eventually(async () => expect((await told()).value('portcullis_connections')).toBe(0));
});

const told = (): Promise<Scrape> => scrape(p.service);
const refused = async (reason: string) => (await told()).value('portcullis_connections_refused_total', { reason }) ?? 0;

/** Opens connections from an address, and leaves them open. */
async function occupy(from: string, count: number): Promise<void> {
  for (let at = 0; at < count; at += 1) {
    const socket = openSocket(p.url, { from });
    open.push(socket);
    await once(socket, 'connect');
  }
  await eventually(async () => expect((await told()).value('portcullis_connections')).toBe(open.length));
}

const ask = (from: string) =>
  sendRaw(p.url, request('GET', '/health'), { from }).then(
    ({ status }) => status,
    () => 'closed',
  );
/** A connection that was closed unheard has no status. */
const isRefused = async (from: string) => [NaN, 'closed'].includes(await ask(from));

it('D2-24: one peer may hold half of MAX_CONNECTIONS; one more is closed, and other peers are served', async () => {
  const before = await refused('peer');
  await occupy('127.0.0.2', 3);
  expect(await isRefused('127.0.0.2')).toBe(true);
  expect((await refused('peer')) - before).toBe(1);
  expect(await ask('127.0.0.3')).toBe(200);
  open.shift()?.destroy();
  await eventually(async () => expect(await ask('127.0.0.2')).toBe(200));
});

it('D2-24: all peers, a trusted proxy included, may hold MAX_CONNECTIONS; one more is closed, and the admin listener works', async () => {
  const before = await refused('all');
  await occupy(PROXY, 5);
  expect(await isRefused('127.0.0.2')).toBe(true);
  expect(await isRefused(PROXY)).toBe(true);
  expect((await refused('all')) - before).toBe(2);
  open.shift()?.destroy();
  await eventually(async () => expect(await ask('127.0.0.2')).toBe(200));
});

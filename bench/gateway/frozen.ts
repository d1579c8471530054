import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { Pool } from 'undici';
import type { Effort } from '../lib/pairs.ts';
import { readDemoFile, type Server, startProduct } from '../lib/product.ts';
import type { Table } from '../lib/report.ts';
import { cpuOfLoad } from '../lib/round.ts';
import { median, percentile } from '../lib/statistics.ts';
import { emptyFolder, titleOf, type World } from '../lib/world.ts';
import { productOf, requestOf, startUpstream, tokenOf } from './contenders.ts';

const CALLERS = 300;
const AGAIN_MS = 100;

/** What requests to one service take while another one has frozen and its callers keep coming. */
export async function besideFrozen(world: World, { pairs, requests, warmUp }: Effort): Promise<Table> {
  await using folder = await emptyFolder();
  await using servers = new AsyncDisposableStack();
  const frozen = await startFrozen();
  servers.defer(frozen.stop);
  const upstream = await startUpstream(folder.path);
  servers.defer(() => upstream.stop());
  const server = await startProduct(await productOf(world, { accounts: upstream.url, wallets: frozen.url }));
  servers.defer(() => server.stop());
  const token = await tokenOf(server, world);
  const run = (count: number) => cpuOfLoad(server, { ...requestOf(server, token), connections: 32, requests: count });
  await run(warmUp);
  const latencies: Record<'alone' | 'beside', number[][]> = { alone: [], beside: [] };
  for (let pair = 0; pair < pairs; pair++) {
    latencies.alone.push((await run(requests)).latencies);
    await using _flood = flood(server, world, token);
    await frozen.isFull();
    latencies.beside.push((await run(requests)).latencies);
  }
  const row = (name: string, rounds: readonly number[][]) => [
    name,
    ...[0.5, 0.99].map((share) => median(rounds.map((round) => percentile(round, share))).toFixed(1)),
  ];
  return {
    head: [`accounts of ${titleOf(world.stores)}, 32 connections`, 'p50, ms', 'p99, ms'],
    rows: [row('alone', latencies.alone), row(`while ${CALLERS} callers wait for wallets, frozen`, latencies.beside)],
  };
}

/** A server that accepts connections and reads nothing. */
async function startFrozen() {
  const sockets = new Set<Socket>();
  const server = createServer({ pauseOnConnect: true }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => sockets.delete(socket));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a TCP server has a port');
  return {
    url: `http://127.0.0.1:${address.port}`,
    isFull: async () => {
      while (sockets.size < 100) await delay(AGAIN_MS);
    },
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Callers of the frozen service, who come again when they are refused. */
function flood(server: Server, { dataDir }: World, token: string): AsyncDisposable {
  const { wallet_id: wallet, network_id: network } = readDemoFile(dataDir);
  const pool = new Pool(server.url, { connections: CALLERS });
  const stopped = new AbortController();
  const request = {
    method: 'POST' as const,
    path: `/v1/wallets/${wallet}/networks/${network}`,
    headers: { authorization: `Bearer ${token}` },
    signal: stopped.signal,
  };
  const call = async (): Promise<void> => {
    while (!stopped.signal.aborted) {
      const answer = await pool.request(request).catch(() => undefined);
      await answer?.body.dump().catch(() => undefined);
      await delay(AGAIN_MS);
    }
  };
  const calls = Array.from({ length: CALLERS }, call);
  return {
    [Symbol.asyncDispose]: async () => {
      stopped.abort();
      await Promise.all(calls);
      await pool.destroy();
    },
  };
}

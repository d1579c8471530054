import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { cpuMs } from '../lib/process-stats.ts';
import type { Server } from '../lib/product.ts';

const LOAD = join(import.meta.dirname, 'load.ts');
/** What a server does after its last answer, such as writing audit records, belongs to the round. */
const SETTLE_MS = 700;

export interface Contender {
  server: Server;
  token: string | undefined;
}

export interface Pair {
  /** Microseconds of CPU for each request. */
  product: number;
  bare: number;
}

interface RoundsOptions {
  product: Contender;
  bare: Contender;
  pairs: number;
  requests: number;
  warmUp: number;
}

/** Rounds in turn, product and bare, after a warm-up of both. */
export async function runRounds({ product, bare, pairs, requests, warmUp }: RoundsOptions): Promise<Pair[]> {
  for (const contender of [product, bare]) await runRound(contender, warmUp);
  const results: Pair[] = [];
  while (results.length < pairs) {
    results.push({ product: await runRound(product, requests), bare: await runRound(bare, requests) });
  }
  return results;
}

/** One round of requests; gives the server's microseconds of CPU for each. */
export async function runRound({ server, token }: Contender, requests: number): Promise<number> {
  const before = cpuMs(server.pid);
  await runLoad(`${server.url}/v1/accounts?limit=10`, requests, token);
  await delay(SETTLE_MS);
  return ((cpuMs(server.pid) - before) * 1000) / requests;
}

async function runLoad(target: string, requests: number, token: string | undefined): Promise<void> {
  const args = [LOAD, target, `${requests}`, ...(token === undefined ? [] : [token])];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit'] });
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error(`the load generator ended with ${code}`);
}

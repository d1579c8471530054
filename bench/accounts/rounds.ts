import type { Server } from '../lib/product.ts';
import { cpuOfLoad } from '../lib/round.ts';

const CONNECTIONS = 8;

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
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const url = `${server.url}/v1/accounts?limit=10`;
  const { cpuUs } = await cpuOfLoad(server, { url, method: 'GET', headers, connections: CONNECTIONS, requests });
  return cpuUs;
}

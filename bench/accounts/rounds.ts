import type { Server } from '../lib/product.ts';
import { cpuOfLoad, type Round } from '../lib/round.ts';

const CONNECTIONS = 8;

export interface Contender {
  server: Server;
  token: string | undefined;
  /** What is asked for; the first page of ten unless given. */
  path?: string;
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
export async function runRound(contender: Contender, requests: number): Promise<number> {
  return (await roundOf(contender, requests, CONNECTIONS)).cpuUs;
}

/** The same with the latencies, over as many connections as are given. */
export function roundOf({ server, token, path }: Contender, requests: number, connections: number): Promise<Round> {
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const url = `${server.url}${path ?? '/v1/accounts?limit=10'}`;
  return cpuOfLoad(server, { url, method: 'GET', headers, connections, requests });
}

import type { Server } from '../lib/product.ts';
import { cpuOfLoad, type Round } from '../lib/round.ts';

/** Keep-alive connections of a round. */
export const CONNECTIONS = 8;

export interface Contender {
  server: Server;
  token: string | undefined;
  /** What is asked for; the first page of ten unless given. */
  path?: string;
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

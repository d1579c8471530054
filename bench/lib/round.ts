import { setTimeout as delay } from 'node:timers/promises';
import type { Load } from './load.ts';
import { cpuMs } from './process-stats.ts';
import type { Server } from './product.ts';
import { runLoad } from './run-script.ts';

/** What a server does after its last answer, such as writing audit records, belongs to the round. */
const SETTLE_MS = 700;

export interface Round {
  /** The server's microseconds of CPU for each request: user and system, all threads. */
  cpuUs: number;
  /** Milliseconds that each answer took. */
  latencies: number[];
}

/** One round of a load on a server. */
export async function cpuOfLoad({ pid }: Server, load: Load): Promise<Round> {
  const before = cpuMs(pid);
  const latencies = await runLoad(load);
  await delay(SETTLE_MS);
  return { cpuUs: ((cpuMs(pid) - before) * 1000) / load.requests, latencies };
}

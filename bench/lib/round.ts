import { existsSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { Load } from './load.ts';
import { cpuMs } from './process-stats.ts';
import type { Server } from './product.ts';
import { runLoad } from './run-script.ts';
import { mean } from './statistics.ts';

/** What a server does after its last answer, such as writing audit records, belongs to the round. */
const SETTLE_MS = 700;

export interface Round {
  /** The server's microseconds of CPU for each request: user and system, all threads. */
  cpuUs: number;
  /** Milliseconds that each answer took. */
  latencies: number[];
  perSecond: number;
}

const IDLE_AFTER_MS = 2_000;
const IDLE_MS = 4_000;

/**
 * Milliseconds of CPU a second that each server takes without requests; all are watched at once. A server that has ended
 * has NaN.
 */
export async function idleCpuOf(servers: readonly Server[], idleMs = IDLE_MS): Promise<number[]> {
  await delay(IDLE_AFTER_MS);
  const spent = () => servers.map(({ pid }) => (existsSync(`/proc/${pid}`) ? cpuMs(pid) : Number.NaN));
  const before = spent();
  await delay(idleMs);
  return spent().map((after, index) => ((after - (before[index] ?? 0)) * 1000) / idleMs);
}

/** One round of a load on a server. */
export async function cpuOfLoad({ pid }: Server, load: Load): Promise<Round> {
  const before = cpuMs(pid);
  const latencies = await runLoad(load);
  await delay(SETTLE_MS);
  return {
    cpuUs: ((cpuMs(pid) - before) * 1000) / load.requests,
    latencies,
    // Without a rate, each connection has always one request under way.
    perSecond: load.perSecond ?? (load.connections * 1000) / mean(latencies),
  };
}

import { type PairedRound, runEach } from './pairs.ts';
import { tell } from './report.ts';
import type { Round } from './round.ts';
import { median, percentile } from './statistics.ts';

/** The share of the full load at which latencies are measured. */
const SHARE = 0.7;

/**
 * At a rate: more than have a request at once while a server keeps up. All are open before, since a new one waits longer
 * than a request does: libuv accepts one each time that it looks for events.
 */
const CONNECTIONS_AT_RATE = 256;

export interface LatencyEffort {
  /** Whose latencies are measured, by title. */
  of: RegExp;
  rounds: number;
  /** A round has at least so many requests and lasts so many seconds, but no more than `mostSeconds`. */
  requests: number;
  seconds: number;
  mostSeconds: number;
}

/** What a contender does at a share of its full load; a value for each round. */
export interface Latency {
  /** Requests a second at full load. */
  full: number[];
  /** Requests a second of the even rate. */
  perSecond: number;
  /** Milliseconds from when a request was due. */
  p50: number[];
  p99: number[];
}

/**
 * Measures latencies at a share of the load that each contender has borne in its rounds at full load. They go in turn, in
 * each round in the opposite order, so that none always follows the same other.
 */
export async function latenciesOf<Contender extends { title: string }>(
  rounds: ReadonlyMap<Contender, readonly PairedRound[]>,
  effort: LatencyEffort | undefined,
  run: (contender: NoInfer<Contender>, requests: number, perSecond: number) => Promise<Round>,
): Promise<Map<Contender, Latency>> {
  const latencies = new Map<Contender, Latency>();
  if (!effort) return latencies;
  for (const [contender, atFullLoad] of rounds) {
    if (!effort.of.test(contender.title)) continue;
    const full = atFullLoad.map(({ perSecond }) => perSecond);
    latencies.set(contender, { full, perSecond: SHARE * median(full), p50: [], p99: [] });
  }
  let left = [...latencies.keys()].filter((contender) => latencies.get(contender)?.full.length);
  for (let round = 1; round <= effort.rounds; round += 1) {
    tell(`round ${round} of ${effort.rounds} at ${SHARE * 100} % of the load …`);
    left = await runEach(left, async (contender) => {
      const latency = latencies.get(contender);
      if (!latency) return;
      const answered = await run(contender, requestsOf(effort, latency.perSecond), latency.perSecond);
      latency.p50.push(percentile(answered.latencies, 0.5));
      latency.p99.push(percentile(answered.latencies, 0.99));
    });
    left.reverse();
  }
  return latencies;
}

/** How a load is sent: one request after another on each of so many connections, or at a rate if there is one. */
export function paceOf(connections: number, perSecond: number | undefined) {
  return perSecond === undefined ? { connections } : { connections: CONNECTIONS_AT_RATE, perSecond };
}

function requestsOf({ requests, seconds, mostSeconds }: LatencyEffort, perSecond: number): number {
  return Math.ceil(Math.min(Math.max(requests, seconds * perSecond), mostSeconds * perSecond));
}

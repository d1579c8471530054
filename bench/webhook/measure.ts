import { join } from 'node:path';
import { basedOn, runEach } from '../lib/pairs.ts';
import { cpuMs, untilIdle } from '../lib/process-stats.ts';
import { tell } from '../lib/report.ts';
import { runScript } from '../lib/run-script.ts';
import { median, percentile } from '../lib/statistics.ts';
import { deleteTopics } from '../lib/topics.ts';
import type { World } from '../lib/world.ts';
import { type Contender, startBare, startPortcullis, TRANSACTIONS } from './contenders.ts';
import type { Loaded, WebhookLoad } from './load.ts';

const LOAD = join(import.meta.dirname, 'load.ts');
const CONNECTIONS = 64;

export interface Effort {
  pairs: number;
  /** How many requests the rounds of a contender have; a slower one has fewer. */
  requests: number;
  warmUp: number;
}

export interface Round {
  perSecond: number;
  /** The server's microseconds of CPU for each request, until it has come to rest. */
  cpuUs: number;
  p50: number;
  p99: number;
}

export interface Result {
  contender: Contender;
  rounds: Round[];
  /** Of each pair: its requests a second by those of the base beside it. */
  ratios: number[];
}

/**
 * The product on each of the worlds beside the bare servers; the last result is that of the coalescing one, which the
 * others are measured against unless `baseTitle` names another one.
 */
export async function compare(
  worlds: readonly World[],
  kafka: World,
  folder: string,
  effort: Effort,
  baseTitle?: RegExp,
): Promise<Result[]> {
  await using servers = new AsyncDisposableStack();
  const started = async (starting: Promise<Contender>) => {
    const contender = await starting;
    servers.defer(() => contender.server.stop());
    return contender;
  };
  servers.defer(() => deleteTopics(kafka));
  const all: Contender[] = [];
  for (const world of worlds) all.push(await started(startPortcullis(world)));
  all.push(await started(startBare(kafka, folder, 'recorded')));
  all.push(await started(startBare(kafka, folder, 'singly')));
  const coalescing = await started(startBare(kafka, folder, 'coalescing'));
  all.push(coalescing);
  const { base, contenders } = basedOn(all, coalescing, baseTitle);
  const results = all.map((contender): Result => ({ contender, rounds: [], ratios: [] }));
  const round = roundsOf();
  await round(base, effort.warmUp);
  let left = await runEach(contenders, (contender) => round(contender, effort.warmUp));
  const ofBase = results.find(({ contender }) => contender === base);
  for (let pair = 1; pair <= effort.pairs; pair++) {
    tell(`round ${pair} of ${effort.pairs} …`);
    left = await runEach(left, async (contender) => {
      const one = await round(contender, effort.requests);
      const beside = await round(base, effort.requests);
      const result = results.find((of) => of.contender === contender);
      result?.rounds.push(one);
      result?.ratios.push(one.perSecond / beside.perSecond);
      ofBase?.rounds.push(beside);
      ofBase?.ratios.push(1);
    });
  }
  return results;
}

/** Rounds of a load, each going on with the notifications where the one before has ended. */
export function roundsOf(): (contender: Pick<Contender, 'server' | 'asked'>, requests: number) => Promise<Round> {
  let first = 0;
  return async ({ server: { pid }, asked }, requests) => {
    const load: WebhookLoad = { ...asked, connections: CONNECTIONS, requests, transactions: TRANSACTIONS, first };
    first += requests;
    const before = cpuMs(pid);
    const { elapsedMs, latencies } = (await runScript(LOAD, load)) as Loaded;
    await untilIdle(pid);
    return {
      perSecond: (requests * 1000) / elapsedMs,
      cpuUs: ((cpuMs(pid) - before) * 1000) / requests,
      p50: percentile(latencies, 0.5),
      p99: percentile(latencies, 0.99),
    };
  };
}

/** The median of what the rounds have under a name. */
export function medianOf({ rounds }: Result, name: keyof Round): number {
  return median(rounds.map((round) => round[name]));
}

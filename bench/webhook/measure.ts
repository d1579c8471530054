import { join } from 'node:path';
import { latenciesOf, paceOf } from '../lib/latency.ts';
import { basedOn, type Effort, pairRounds, type Selection, type Summary, summaryOf } from '../lib/pairs.ts';
import { cpuMs, untilIdle } from '../lib/process-stats.ts';
import type { Round } from '../lib/round.ts';
import { runScript } from '../lib/run-script.ts';
import { deleteTopics } from '../lib/topics.ts';
import type { World } from '../lib/world.ts';
import { type Contender, startBare, startPortcullis, TRANSACTIONS } from './contenders.ts';
import type { Loaded, WebhookLoad } from './load.ts';

const LOAD = join(import.meta.dirname, 'load.ts');
const CONNECTIONS = 64;

export interface Result extends Summary {
  contender: Contender;
  /** Of each pair: its requests a second by those of the base beside it. */
  speeds: number[];
}

/**
 * The product on each of the worlds beside the bare servers; the last result is that of the base, the coalescing one
 * unless another one is selected.
 */
export async function compare(
  worlds: readonly World[],
  kafka: World,
  folder: string,
  effort: Effort,
  selection?: Selection,
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
  const { base, contenders } = basedOn(all, coalescing, selection);
  const run = roundsOf();
  const rounds = await pairRounds({ base, contenders, effort, run });
  const latencies = await latenciesOf(rounds, effort.latency, run);
  return [...contenders, base].map((contender) => {
    const measured = rounds.get(contender) ?? [];
    const speeds = measured.map((round) => round.perSecond / round.base.perSecond);
    return { contender, ...summaryOf(measured, latencies.get(contender)), speeds };
  });
}

/** Rounds of a load, each going on with the notifications where the one before has ended; at a rate if there is one. */
export function roundsOf() {
  let first = 0;
  return async (
    { server: { pid }, asked }: Pick<Contender, 'server' | 'asked'>,
    requests: number,
    perSecond?: number,
  ): Promise<Round> => {
    const pace = paceOf(CONNECTIONS, perSecond);
    const load: WebhookLoad = { ...asked, ...pace, requests, transactions: TRANSACTIONS, first };
    first += requests;
    const before = cpuMs(pid);
    const { elapsedMs, latencies } = (await runScript(LOAD, load)) as Loaded;
    await untilIdle(pid);
    return {
      cpuUs: ((cpuMs(pid) - before) * 1000) / requests,
      latencies,
      perSecond: (requests * 1000) / elapsedMs,
    };
  };
}

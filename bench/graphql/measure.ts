import { type PostgresClient, withPostgres } from '../../test/support/services/pg-client.ts';
import { type Latency, latenciesOf, paceOf } from '../lib/latency.ts';
import type { Load } from '../lib/load.ts';
import {
  basedOn,
  type Effort,
  type PairedRound,
  pairRounds,
  type Selection,
  type Summary,
  summaryOf,
} from '../lib/pairs.ts';
import { cpuOfLoad, idleCpuOf, type Round } from '../lib/round.ts';
import { runLoad } from '../lib/run-script.ts';
import { median } from '../lib/statistics.ts';
import { assertSameData } from './check.ts';
import { type Contender, PEER_KINDS, requestOf, startPeer, startPortcullis } from './contenders.ts';
import type { FilledWorld } from './fill.ts';
import { backendCpu, spentBetween } from './postgres-cpu.ts';

/** Opens what has closed while others were asked, and prepares its statements. */
const BEFORE_ROUND = 100;

export interface Result extends Summary {
  contender: Contender;
  /** Of each pair: the product's CPU by this contender's. */
  productBy: number[];
  /** The same of the requests a second. */
  perSecondBy: number[];
  /** Microseconds of CPU of its connections to PostgreSQL for each request. */
  postgresUs: number;
  /** Milliseconds of CPU a second without a request. */
  idleMs: number;
}

interface GraphqlRound extends Round {
  postgresUs: number;
}

/** The results of so many connections, the product's last. */
export interface Comparison {
  connections: number;
  results: Result[];
}

/** The product and its peers on one database, side by side: each peer's round stands before one of the product's. */
export async function compare(
  world: FilledWorld,
  connections: readonly number[],
  effort: Effort,
  selection?: Selection,
): Promise<Comparison[]> {
  await using servers = new AsyncDisposableStack();
  const started = async (starting: Promise<Contender>) => {
    const contender = await starting;
    servers.defer(() => contender.server.stop());
    return contender;
  };
  const product = await started(startPortcullis(world));
  const peers: Contender[] = [];
  for (const kind of PEER_KINDS) peers.push(await started(startPeer(kind, world, product.token ?? '')));
  const pairing = basedOn([...peers, product], product, selection);
  const all = [...pairing.contenders, pairing.base];
  await assertSameData(all);
  const idle = await idleCpuOf(all.map(({ server }) => server));
  const comparisons: Comparison[] = [];
  await withPostgres(world.servers.DATABASE_URL ?? '', async (client) => {
    for (const count of connections) {
      const run = (contender: Contender, requests: number, perSecond?: number) =>
        roundOf(contender, client, { ...requestOf(contender), ...paceOf(count, perSecond), requests });
      const rounds = await pairRounds({ ...pairing, effort, run });
      const latencies = await latenciesOf(rounds, effort.latency, run);
      const results = all.map((contender, index) => ({
        ...resultOf(contender, rounds.get(contender) ?? [], latencies.get(contender)),
        idleMs: idle[index] ?? 0,
      }));
      comparisons.push({ connections: count, results });
    }
  });
  return comparisons;
}

function resultOf(contender: Contender, rounds: readonly PairedRound<GraphqlRound>[], latency?: Latency) {
  return {
    contender,
    ...summaryOf(rounds, latency),
    productBy: rounds.map(({ cpuUs, baseUs }) => baseUs / cpuUs),
    perSecondBy: rounds.map(({ perSecond, base }) => base.perSecond / perSecond),
    postgresUs: median(rounds.map(({ postgresUs }) => postgresUs)),
  };
}

async function roundOf(contender: Contender, client: PostgresClient, load: Load): Promise<GraphqlRound> {
  await runLoad({ ...load, requests: BEFORE_ROUND });
  const before = await backendCpu(client, contender.kind);
  const round = await cpuOfLoad(contender.server, load);
  const after = await backendCpu(client, contender.kind);
  return { ...round, postgresUs: (spentBetween(before, after) * 1000) / load.requests };
}

import { type PostgresClient, withPostgres } from '../../test/support/services/pg-client.ts';
import { type Effort, type PairedRound, pairRounds, type Summary, summaryOf } from '../lib/pairs.ts';
import { cpuOfLoad, idleCpuOf, type Round } from '../lib/round.ts';
import { runLoad } from '../lib/run-script.ts';
import { mean, median } from '../lib/statistics.ts';
import { assertSameData } from './check.ts';
import { type Contender, PEER_KINDS, requestOf, startPeer, startPortcullis } from './contenders.ts';
import type { FilledWorld } from './fill.ts';
import { backendCpu, spentBetween } from './postgres-cpu.ts';

/** Opens what has closed while others were asked, and prepares its statements. */
const BEFORE_ROUND = 100;

export interface Result extends Summary {
  contender: Contender;
  perSecond: number;
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
  perSecond: number;
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
  const all = [...peers, product];
  await assertSameData(all);
  const idle = await idleCpuOf(all.map(({ server }) => server));
  const comparisons: Comparison[] = [];
  await withPostgres(world.servers.DATABASE_URL ?? '', async (client) => {
    for (const count of connections) {
      const run = (contender: Contender, requests: number) => roundOf(contender, client, count, requests);
      const rounds = await pairRounds({ contenders: peers, base: product, effort, run });
      const results = all.map((contender, index) => resultOf(contender, rounds.get(contender) ?? [], idle[index] ?? 0));
      comparisons.push({ connections: count, results });
    }
  });
  return comparisons;
}

function resultOf(contender: Contender, rounds: readonly PairedRound<GraphqlRound>[], idleMs: number): Result {
  return {
    contender,
    ...summaryOf(rounds),
    perSecond: median(rounds.map(({ perSecond }) => perSecond)),
    productBy: rounds.map(({ cpuUs, baseUs }) => baseUs / cpuUs),
    perSecondBy: rounds.map(({ perSecond, base }) => base.perSecond / perSecond),
    postgresUs: median(rounds.map(({ postgresUs }) => postgresUs)),
    idleMs,
  };
}

async function roundOf(
  contender: Contender,
  client: PostgresClient,
  connections: number,
  requests: number,
): Promise<GraphqlRound> {
  const load = { ...requestOf(contender), connections };
  await runLoad({ ...load, requests: BEFORE_ROUND });
  const before = await backendCpu(client, contender.kind);
  const round = await cpuOfLoad(contender.server, { ...load, requests });
  const after = await backendCpu(client, contender.kind);
  return {
    ...round,
    postgresUs: (spentBetween(before, after) * 1000) / requests,
    // Each connection has always one request under way.
    perSecond: (connections * 1000) / mean(round.latencies),
  };
}

import { tell } from '../lib/report.ts';
import { cpuOfLoad, type Round } from '../lib/round.ts';
import { median, percentile } from '../lib/statistics.ts';
import { databasesOf, type World } from '../lib/world.ts';
import { check } from './check.ts';
import { type Contender, type PeerName, startPeer, startPortcullis } from './contenders.ts';

const CONNECTIONS = 16;
const PEERS: readonly PeerName[] = ['oidc-provider', 'oauth2-server', 'bare-hmac'];

export interface Effort {
  pairs: number;
  requests: number;
  warmUp: number;
}

/** A contender's medians over its rounds, and the ratios to the bare server's rounds beside them. */
export interface Result {
  contender: Contender;
  refreshes: boolean;
  cpuUs: number;
  /** Of each pair: this contender's CPU by the bare server's. */
  ratios: number[];
  /** CPU of each round. */
  rounds: number[];
  p50: number;
  p99: number;
}

/** The product on each of the worlds and its peers, side by side; the last result is the bare server's. */
export async function compare(worlds: readonly World[], folder: string, effort: Effort): Promise<Result[]> {
  await using servers = new AsyncDisposableStack();
  const started = async (starting: Promise<Contender>) => {
    const contender = await starting;
    servers.defer(() => contender.server.stop());
    return contender;
  };
  const bare = await started(startPeer('bare', folder));
  const contenders: Contender[] = [];
  for (const world of worlds) contenders.push(await started(startPortcullis(world)));
  for (const name of PEERS) contenders.push(await started(startPeer(name, folder)));
  for (const url of databasesOf(worlds)) contenders.push(await started(startPeer('bare-hmac-recorded', folder, url)));
  const refreshes = new Map<Contender, boolean>();
  for (const contender of [...contenders, bare]) refreshes.set(contender, await checked(contender));
  const rounds = await runRounds(contenders, bare, effort);
  return [...contenders, bare].map((contender) => {
    return resultOf(contender, refreshes.get(contender) ?? false, rounds.get(contender) ?? []);
  });
}

async function checked(contender: Contender): Promise<boolean> {
  const { refreshes, limited } = await check(contender);
  const isProduct = contender.kind === 'embedded' || contender.kind === 'servers';
  if (isProduct && !limited) tell(`${contender.title}: its answer names no limits: the guards count nothing`);
  return refreshes;
}

interface PairedRound extends Round {
  /** Microseconds of CPU of the bare server in the round beside this one. */
  bareUs: number;
}

/** After a warm-up of all, each contender's round stands before one of the bare server's; pairs go round in turn. */
async function runRounds(
  contenders: readonly Contender[],
  bare: Contender,
  { pairs, requests, warmUp }: Effort,
): Promise<Map<Contender, PairedRound[]>> {
  const results = new Map<Contender, PairedRound[]>([...contenders, bare].map((contender) => [contender, []]));
  for (const contender of results.keys()) await runRound(contender, warmUp);
  for (let pair = 1; pair <= pairs; pair++) {
    tell(`round ${pair} of ${pairs} …`);
    for (const contender of contenders) {
      const round = await runRound(contender, requests);
      const beside = await runRound(bare, requests);
      results.get(contender)?.push({ ...round, bareUs: beside.cpuUs });
      results.get(bare)?.push({ ...beside, bareUs: beside.cpuUs });
    }
  }
  return results;
}

/** One round of a contender's token requests. */
export function runRound({ server, request }: Pick<Contender, 'server' | 'request'>, requests: number): Promise<Round> {
  const { url, headers, body, clientSecret } = request;
  const load = { url, method: 'POST' as const, headers, body: body(clientSecret), connections: CONNECTIONS, requests };
  return cpuOfLoad(server, load);
}

function resultOf(contender: Contender, refreshes: boolean, rounds: readonly PairedRound[]): Result {
  return {
    contender,
    refreshes,
    cpuUs: median(rounds.map(({ cpuUs }) => cpuUs)),
    ratios: rounds.map(({ cpuUs, bareUs }) => cpuUs / bareUs),
    rounds: rounds.map(({ cpuUs }) => cpuUs),
    p50: median(rounds.map(({ latencies }) => percentile(latencies, 0.5))),
    p99: median(rounds.map(({ latencies }) => percentile(latencies, 0.99))),
  };
}

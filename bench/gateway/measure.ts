import { request } from 'undici';
import { tell } from '../lib/report.ts';
import { cpuOfLoad, type Round } from '../lib/round.ts';
import { median, percentile } from '../lib/statistics.ts';
import type { World } from '../lib/world.ts';
import {
  type Contender,
  type PeerName,
  requestOf,
  startPeer,
  startPortcullis,
  startUpstream,
  tokenOf,
} from './contenders.ts';

const CONNECTIONS = 32;
const PEERS: readonly PeerName[] = ['undici', 'fastify', 'express'];

export interface Effort {
  pairs: number;
  requests: number;
  warmUp: number;
}

/** A contender's medians over its rounds, and the ratios to the bare server's rounds beside them. */
export interface Result {
  contender: Contender;
  cpuUs: number;
  /** Of each pair: this contender's CPU by the bare server's. */
  ratios: number[];
  p50: number;
  p99: number;
}

interface PairedRound extends Round {
  bareUs: number;
}

/** The product on each of the worlds and its peers before one upstream, side by side; the last result is the bare server's. */
export async function compare(worlds: readonly World[], folder: string, effort: Effort): Promise<Result[]> {
  await using servers = new AsyncDisposableStack();
  const upstream = await startUpstream(folder);
  servers.defer(() => upstream.stop());
  const started = async (starting: Promise<Contender>) => {
    const contender = await starting;
    servers.defer(() => contender.server.stop());
    return contender;
  };
  const bare = await started(startPeer('bare', folder, upstream.url));
  const contenders: Contender[] = [];
  const tokens = new Map<Contender, string>();
  for (const world of worlds) {
    const contender = await started(startPortcullis(world, upstream.url));
    contenders.push(contender);
    tokens.set(contender, await tokenOf(contender.server, world));
  }
  const [common = ''] = tokens.values();
  for (const name of PEERS) contenders.push(await started(startPeer(name, folder, upstream.url)));
  const all = [...contenders, bare];
  for (const contender of all) await check(contender, tokens.get(contender) ?? common);
  const run = (contender: Contender, requests: number) => {
    const asked = requestOf(contender.server, tokens.get(contender) ?? common);
    return cpuOfLoad(contender.server, { ...asked, connections: CONNECTIONS, requests });
  };
  const rounds = await runRounds(contenders, bare, effort, run);
  return all.map((contender) => resultOf(contender, rounds.get(contender) ?? []));
}

/** @throws unless a good token gets what the upstream says, and a broken one is refused. */
async function check({ title, server }: Contender, token: string): Promise<void> {
  for (const [given, expected] of [
    [token, 200],
    [`${token.slice(0, -4)}AAAA`, 401],
  ] as const) {
    const { url, headers } = requestOf(server, given);
    const { statusCode, body } = await request(url, { headers });
    const text = await body.text();
    if (statusCode !== expected)
      throw new Error(`${title} answered ${statusCode} in the place of ${expected}: ${text}`);
    if (expected === 200 && JSON.parse(text).data.length !== 10)
      throw new Error(`${title} answered by itself: ${text}`);
  }
}

type Run = (contender: Contender, requests: number) => Promise<Round>;

/** After a warm-up of all, each contender's round stands before one of the bare server's; pairs go round in turn. */
async function runRounds(
  contenders: readonly Contender[],
  bare: Contender,
  { pairs, requests, warmUp }: Effort,
  run: Run,
): Promise<Map<Contender, PairedRound[]>> {
  const results = new Map<Contender, PairedRound[]>([...contenders, bare].map((contender) => [contender, []]));
  for (const contender of results.keys()) await run(contender, warmUp);
  for (let pair = 1; pair <= pairs; pair++) {
    tell(`round ${pair} of ${pairs} …`);
    for (const contender of contenders) {
      const round = await run(contender, requests);
      const beside = await run(bare, requests);
      results.get(contender)?.push({ ...round, bareUs: beside.cpuUs });
      results.get(bare)?.push({ ...beside, bareUs: beside.cpuUs });
    }
  }
  return results;
}

function resultOf(contender: Contender, rounds: readonly PairedRound[]): Result {
  return {
    contender,
    cpuUs: median(rounds.map(({ cpuUs }) => cpuUs)),
    ratios: rounds.map(({ cpuUs, bareUs }) => cpuUs / bareUs),
    p50: median(rounds.map(({ latencies }) => percentile(latencies, 0.5))),
    p99: median(rounds.map(({ latencies }) => percentile(latencies, 0.99))),
  };
}

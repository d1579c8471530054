import { latenciesOf, paceOf } from '../lib/latency.ts';
import { basedOn, type Effort, pairRounds, type Selection, type Summary, summaryOf } from '../lib/pairs.ts';
import { tell } from '../lib/report.ts';
import { cpuOfLoad, type Round } from '../lib/round.ts';
import { databasesOf, type World } from '../lib/world.ts';
import { check } from './check.ts';
import { type Contender, type PeerName, startPeer, startPortcullis } from './contenders.ts';

const CONNECTIONS = 16;
const PEERS: readonly PeerName[] = ['oidc-provider', 'oauth2-server', 'bare-hmac'];
const RECORDED: readonly PeerName[] = ['bare-hmac-recorded', 'oidc-provider-recorded'];

export interface Result extends Summary {
  contender: Contender;
  refreshes: boolean;
  /** CPU of each round. */
  rounds: number[];
}

/**
 * The product on each of the worlds and its peers, side by side; the last result is that of the base, the bare server
 * unless another one is selected.
 */
export async function compare(
  worlds: readonly World[],
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
  const bare = await started(startPeer('bare', folder));
  const contenders: Contender[] = [];
  for (const world of worlds) contenders.push(await started(startPortcullis(world)));
  for (const name of PEERS) contenders.push(await started(startPeer(name, folder)));
  for (const url of databasesOf(worlds)) {
    for (const name of RECORDED) contenders.push(await started(startPeer(name, folder, url)));
  }
  const refreshes = new Map<Contender, boolean>();
  const pairing = basedOn([...contenders, bare], bare, selection);
  const all = [...pairing.contenders, pairing.base];
  for (const contender of all) refreshes.set(contender, await checked(contender));
  const rounds = await pairRounds({ ...pairing, effort, run: runRound });
  const latencies = await latenciesOf(rounds, effort.latency, runRound);
  return all.map((contender) => {
    const measured = rounds.get(contender) ?? [];
    return {
      contender,
      refreshes: refreshes.get(contender) ?? false,
      ...summaryOf(measured, latencies.get(contender)),
      rounds: measured.map(({ cpuUs }) => cpuUs),
    };
  });
}

async function checked(contender: Contender): Promise<boolean> {
  const { refreshes, limited } = await check(contender);
  const isProduct = contender.kind === 'embedded' || contender.kind === 'servers';
  if (isProduct && !limited) tell(`${contender.title}: its answer names no limits: the guards count nothing`);
  return refreshes;
}

/** One round of a contender's token requests, at a rate if there is one. */
export function runRound(
  { server, request }: Pick<Contender, 'server' | 'request'>,
  requests: number,
  perSecond?: number,
): Promise<Round> {
  const { url, headers, body, clientSecret } = request;
  const asked = { url, method: 'POST' as const, headers, body: body(clientSecret) };
  return cpuOfLoad(server, { ...asked, ...paceOf(CONNECTIONS, perSecond), requests });
}

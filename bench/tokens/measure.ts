import { basedOn, type Effort, type PairedRound, pairRounds, type Summary, summaryOf } from '../lib/pairs.ts';
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
 * The product on each of the worlds and its peers, side by side; the last result is the bare server's, which the others
 * are measured against unless `baseTitle` names another one.
 */
export async function compare(
  worlds: readonly World[],
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
  const bare = await started(startPeer('bare', folder));
  const contenders: Contender[] = [];
  for (const world of worlds) contenders.push(await started(startPortcullis(world)));
  for (const name of PEERS) contenders.push(await started(startPeer(name, folder)));
  for (const url of databasesOf(worlds)) {
    for (const name of RECORDED) contenders.push(await started(startPeer(name, folder, url)));
  }
  const refreshes = new Map<Contender, boolean>();
  const all = [...contenders, bare];
  for (const contender of all) refreshes.set(contender, await checked(contender));
  const rounds = await pairRounds({
    ...basedOn(all, bare, baseTitle),
    effort,
    run: (contender: Contender, requests) => runRound(contender, requests),
  });
  return all.map((contender) => {
    return resultOf(contender, refreshes.get(contender) ?? false, rounds.get(contender) ?? []);
  });
}

async function checked(contender: Contender): Promise<boolean> {
  const { refreshes, limited } = await check(contender);
  const isProduct = contender.kind === 'embedded' || contender.kind === 'servers';
  if (isProduct && !limited) tell(`${contender.title}: its answer names no limits: the guards count nothing`);
  return refreshes;
}

/** One round of a contender's token requests. */
export function runRound({ server, request }: Pick<Contender, 'server' | 'request'>, requests: number): Promise<Round> {
  const { url, headers, body, clientSecret } = request;
  const load = { url, method: 'POST' as const, headers, body: body(clientSecret), connections: CONNECTIONS, requests };
  return cpuOfLoad(server, load);
}

function resultOf(contender: Contender, refreshes: boolean, rounds: readonly PairedRound[]): Result {
  return { contender, refreshes, ...summaryOf(rounds), rounds: rounds.map(({ cpuUs }) => cpuUs) };
}

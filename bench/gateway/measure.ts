import { request } from 'undici';
import { latenciesOf, paceOf } from '../lib/latency.ts';
import { basedOn, type Effort, pairRounds, type Selection, type Summary, summaryOf } from '../lib/pairs.ts';
import { cpuOfLoad, idleCpuOf } from '../lib/round.ts';
import { databasesOf, type World } from '../lib/world.ts';
import {
  type Contender,
  type PeerName,
  portcullisStarts,
  type RecordedName,
  requestOf,
  SIGNING_SECRET,
  startPeer,
  startRecorded,
  startUpstream,
} from './contenders.ts';
import { installedStarts } from './installed.ts';

const CONNECTIONS = 32;
const PEERS: readonly PeerName[] = ['undici', 'fastify', 'express'];
const RECORDED: readonly RecordedName[] = ['bare', 'fastify', 'express'];

export interface Result extends Summary {
  contender: Contender;
  /** Milliseconds of CPU a second without a request. */
  idleMs: number;
}

/**
 * The product on each of the worlds and its peers before one upstream, side by side; the last result is that of the base,
 * the bare server unless another one is selected.
 */
export async function compare(
  worlds: readonly World[],
  folder: string,
  effort: Effort,
  selection?: Selection,
): Promise<Result[]> {
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
  for (const start of [
    ...worlds.flatMap((world) => portcullisStarts(world, upstream.url)),
    ...PEERS.map((name) => () => startPeer(name, folder, upstream.url)),
    ...databasesOf(worlds).flatMap((url) =>
      RECORDED.map((name) => () => startRecorded(name, folder, upstream.url, url)),
    ),
    ...installedStarts({ folder, upstream: upstream.url, signingSecret: SIGNING_SECRET }),
  ])
    contenders.push(await started(start()));
  const [first] = contenders;
  if (first) contenders.splice(1, 0, withNewTokens(first));
  const common = contenders.find(({ token }) => token !== undefined)?.token ?? '';
  const pairing = basedOn([...contenders, bare], bare, selection);
  const all = [...pairing.contenders, pairing.base];
  for (const contender of all) await check(contender, contender.token ?? common);
  const run = ({ server, token = common, isTokenNew }: Contender, requests: number, perSecond?: number) => {
    const tokenSecret = isTokenNew ? { tokenSecret: SIGNING_SECRET } : {};
    return cpuOfLoad(server, {
      ...requestOf(server, token),
      ...tokenSecret,
      ...paceOf(CONNECTIONS, perSecond),
      requests,
    });
  };
  const rounds = await pairRounds({ ...pairing, effort, run });
  const latencies = await latenciesOf(rounds, effort.latency, run);
  const idle = await idleCpuOf(all.map(({ server }) => server));
  return all.map((contender, index) => ({
    contender,
    idleMs: idle[index] ?? 0,
    ...summaryOf(rounds.get(contender) ?? [], latencies.get(contender)),
  }));
}

/** The product judges a token once; this is what it takes where each is a new one. */
function withNewTokens(contender: Contender): Contender {
  return { ...contender, title: `${contender.title}; each token new`, isTokenNew: true };
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

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SIGNING_SECRET } from '../gateway/contenders.ts';
import { productionEnv } from '../gateway/production.ts';
import {
  clientToken,
  freePort,
  peerArguments,
  readDemoFile,
  type Server,
  startProduct,
  startServer,
} from '../lib/product.ts';
import type { World } from '../lib/world.ts';
import { DOCUMENT, postgraphileDocument } from './documents.ts';
import type { FilledWorld } from './fill.ts';
import type { PeerOptions } from './peer.ts';

export type Kind =
  | 'portcullis'
  | 'bare'
  | 'bare-recorded'
  | 'mercurius-jit'
  | 'mercurius-jit-recorded'
  | 'mercurius'
  | 'apollo'
  | 'postgraphile';

/** A server that answers the question; its connections to PostgreSQL go by its kind. */
export interface Contender {
  kind: Kind;
  title: string;
  server: Server;
  document: string;
  token?: string;
}

interface Peer {
  title: string;
  script: string;
  jit?: number;
  /** What answers 200 once it is ready; `/health` unless given. */
  ready?: string;
}

const ASK_TYPE = '/graphql?query=%7B__typename%7D';

const PEERS: Record<Exclude<Kind, 'portcullis'>, Peer> = {
  bare: { title: 'by hand: node:http, pg', script: 'bare.ts' },
  'bare-recorded': { title: 'by hand, with a record of each request', script: 'bare.ts' },
  'mercurius-jit': { title: 'Mercurius, jit: 1', script: 'mercurius.ts', jit: 1 },
  'mercurius-jit-recorded': {
    title: 'Mercurius, jit: 1, token checked, with a record of each request',
    script: 'mercurius.ts',
    jit: 1,
  },
  mercurius: { title: 'Mercurius without jit', script: 'mercurius.ts' },
  apollo: { title: 'Apollo Server', script: 'apollo.ts', ready: ASK_TYPE },
  postgraphile: { title: 'PostGraphile', script: 'postgraphile.ts', ready: ASK_TYPE },
};

/** All but the product. */
export const PEER_KINDS = [
  'bare',
  'bare-recorded',
  'mercurius-jit',
  'mercurius-jit-recorded',
  'mercurius',
  'apollo',
  'postgraphile',
] as const;

/** How to start the product as a gateway in production on a world that has been filled. */
export function productOn(world: World) {
  const own = { PORTCULLIS_ROLE: 'gateway', JWT_SECRET_USER: SIGNING_SECRET, PGAPPNAME: 'portcullis' };
  const env = { ...productionEnv(world), ...own };
  return { ...world, env };
}

/** The product with all that it has on. */
export async function startPortcullis(world: World): Promise<Contender> {
  return portcullisAt(await startProduct(productOn(world)), world);
}

/** The product that runs, with a token of the demo's client. */
export async function portcullisAt(server: Server, { dataDir }: World): Promise<Contender> {
  const token = await clientToken(server.url, readDemoFile(dataDir));
  return { kind: 'portcullis', title: 'Portcullis, role gateway, in production', server, document: DOCUMENT, token };
}

/** One of the others, as a process of its own. */
export async function startPeer(
  kind: Exclude<Kind, 'portcullis'>,
  { dataDir, servers, nodeId }: FilledWorld,
  token: string,
): Promise<Contender> {
  const { title, script, jit = 0, ready } = PEERS[kind];
  const port = await freePort();
  const databaseUrl = servers.DATABASE_URL ?? '';
  const isRecorded = kind === 'bare-recorded' || kind === 'mercurius-jit-recorded';
  const file = join(dataDir, `${kind}-records.txt`);
  const records = isRecorded ? { records: { file, databaseUrl }, signingSecret: SIGNING_SECRET } : {};
  const options: PeerOptions = { port, databaseUrl, nodeId, jit, ...records };
  const path = join(dataDir, `${kind}.json`);
  writeFileSync(path, JSON.stringify(options));
  const server = await startServer({
    args: peerArguments(join(import.meta.dirname, script), path),
    env: { ...process.env, NODE_ENV: 'production', PGAPPNAME: kind },
    url: `http://127.0.0.1:${port}`,
    logPath: join(dataDir, `${kind}.log`),
    ...(ready === undefined ? {} : { ready }),
  });
  return { kind, title, server, document: kind === 'postgraphile' ? postgraphileDocument(nodeId) : DOCUMENT, token };
}

/** The request that is measured. */
export function requestOf({ server, document, token }: Contender) {
  return {
    url: `${server.url}/graphql`,
    method: 'POST' as const,
    headers: {
      'content-type': 'application/json',
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({ query: document }),
  };
}

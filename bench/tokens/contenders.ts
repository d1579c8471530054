import { randomBytes, randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PERMISSIONS } from '../../src/access/identity/permissions.rules.ts';
import { freePort, peerArguments, ROOT, readDemoFile, type Server, startProduct, startServer } from '../lib/product.ts';
import { type Stores, seedWorld, titleOf, type World } from '../lib/world.ts';
import type { PeerOptions } from './peer.ts';

/** A server that gives tokens, and how it is asked for one. */
export interface Contender {
  kind: Stores | PeerName;
  title: string;
  server: Server;
  request: TokenRequest;
}

export interface TokenRequest {
  url: string;
  headers: Record<string, string>;
  /** The body with this client secret. */
  body(clientSecret: string): string;
  clientSecret: string;
}

export type PeerName =
  | 'bare'
  | 'bare-hmac'
  | 'bare-hmac-recorded'
  | 'oidc-provider'
  | 'oidc-provider-recorded'
  | 'oauth2-server';

interface Peer {
  title: string;
  script: string;
  signsBy: PeerOptions['signsBy'];
  asks: 'json' | 'form';
}

const PEERS: Record<PeerName, Peer> = {
  bare: { title: 'bare node:http, jose', script: 'bare.ts', signsBy: 'jose', asks: 'json' },
  'bare-hmac': { title: 'bare node:http, createHmac', script: 'bare.ts', signsBy: 'createHmac', asks: 'json' },
  'bare-hmac-recorded': {
    title: 'bare node:http, createHmac, with a record of each request',
    script: 'bare.ts',
    signsBy: 'createHmac',
    asks: 'json',
  },
  'oidc-provider': { title: titled('oidc-provider'), script: 'oidc-provider.ts', signsBy: 'jose', asks: 'form' },
  'oidc-provider-recorded': {
    title: `${titled('oidc-provider')}, with a record of each request`,
    script: 'oidc-provider.ts',
    signsBy: 'jose',
    asks: 'form',
  },
  'oauth2-server': {
    title: `Express, ${titled('@node-oauth/oauth2-server')}`,
    script: 'oauth2-server.ts',
    signsBy: 'jose',
    asks: 'form',
  },
};

/** The secret that every contender signs user tokens with. */
export const SIGNING_SECRET = randomBytes(32).toString('base64url');

/** The product on seeded stores; its client has limits of rate and of the month. */
export async function startPortcullis(world: World): Promise<Contender> {
  await seedWorld(world, 'limits');
  const server = await startProduct(signing(world));
  const title = `Portcullis, ${titleOf(world.stores)}`;
  return { kind: world.stores, title, server, request: productRequest(server, world) };
}

/** How to start the product so that it signs with the common secret: embedded all of it, on servers as a gateway. */
export function signing(world: World) {
  const role: Record<string, string> = world.stores === 'servers' ? { PORTCULLIS_ROLE: 'gateway' } : {};
  return { ...world, env: { JWT_SECRET_USER: SIGNING_SECRET, ...role } };
}

/** How the product on this world is asked for a token of the demo's client. */
export function productRequest({ url }: Server, { dataDir }: World): TokenRequest {
  const { client_id: clientId, client_secret: clientSecret } = readDemoFile(dataDir).client;
  return jsonRequest(`${url}/v2/oauth/token`, clientId, clientSecret);
}

/** One of the others, as a process of its own; `folder` takes its options and its log. */
export async function startPeer(kind: PeerName, folder: string, databaseUrl?: string): Promise<Contender> {
  const { title, script, signsBy, asks } = PEERS[kind];
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const options: PeerOptions = {
    port,
    issuer: url,
    audience: 'https://api.example.com/',
    clientId: randomUUID(),
    clientSecret: randomBytes(32).toString('base64url'),
    scopes: PERMISSIONS,
    signingSecret: SIGNING_SECRET,
    signsBy,
    ...(databaseUrl === undefined ? {} : { records: { file: join(folder, `${kind}-records.txt`), databaseUrl } }),
  };
  const path = join(folder, `${kind}.json`);
  writeFileSync(path, JSON.stringify(options));
  const env = { ...process.env, NODE_ENV: 'production' };
  const args = peerArguments(join(import.meta.dirname, script), path);
  const server = await startServer({ args, env, url, logPath: join(folder, `${kind}.log`) });
  const { clientId, clientSecret } = options;
  const target = `${url}/token`;
  const request = asks === 'json' ? jsonRequest(target, clientId, clientSecret) : formRequest(target, options);
  return { kind, title, server, request };
}

function jsonRequest(url: string, clientId: string, clientSecret: string): TokenRequest {
  return {
    url,
    headers: { 'content-type': 'application/json' },
    body: (secret) => JSON.stringify({ grant_type: 'client_credentials', client_id: clientId, client_secret: secret }),
    clientSecret,
  };
}

function formRequest(url: string, { clientId, clientSecret, scopes }: PeerOptions): TokenRequest {
  const scope = scopes.join(' ');
  return {
    url,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: (secret) =>
      new URLSearchParams({
        grant_type: 'client_credentials',
        client_id: clientId,
        client_secret: secret,
        scope,
      }).toString(),
    clientSecret,
  };
}

/** A package that is installed beside the benchmarks, with its version. */
function titled(name: string): string {
  const path = join(ROOT, 'bench/node_modules', name, 'package.json');
  return `${name} ${JSON.parse(readFileSync(path, 'utf8')).version}`;
}

import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { clientToken, freePort, ROOT, readDemoFile, type Server, startProduct, startServer } from '../lib/product.ts';
import { type Stores, seedWorld, titleOf, type World } from '../lib/world.ts';
import { type GatewayOptions, PATH } from './peer.ts';

export type PeerName = 'bare' | 'undici' | 'express' | 'fastify';

/** A gateway in front of the common upstream. */
export interface Contender {
  kind: Stores | PeerName;
  title: string;
  server: Server;
}

const TITLES: Record<PeerName, string> = {
  bare: 'bare node:http, http.Agent',
  undici: 'node:http, undici',
  express: 'Express: http-proxy-middleware, jose, rate-limiter-flexible',
  fastify: 'Fastify: http-proxy, jwt, rate-limit',
};

/** The secret that every contender judges user tokens with. */
export const SIGNING_SECRET = randomBytes(32).toString('base64url');

/** The service behind all of them. */
export async function startUpstream(folder: string): Promise<Server> {
  return startScript('upstream', folder, '');
}

/** One of the others, as a process of its own; `folder` takes its options and its log. */
export async function startPeer(kind: PeerName, folder: string, upstream: string): Promise<Contender> {
  return { kind, title: TITLES[kind], server: await startScript(kind, folder, upstream) };
}

/** The product on seeded stores, its accounts at the upstream; its client has limits of rate and of the month. */
export async function startPortcullis(world: World, upstream: string): Promise<Contender> {
  const product = await productOf(world, { accounts: upstream });
  return { kind: world.stores, title: `Portcullis, ${titleOf(world.stores)}`, server: await startProduct(product) };
}

/** How to start the product so that these services are at these URLs. */
export async function productOf(world: World, services: Record<string, string>) {
  await seedWorld(world, 'limits');
  const config = parse(readFileSync(join(ROOT, 'gateway.yaml'), 'utf8'));
  const { webhook_alias: alias } = config;
  const dates = { deprecated_at: isoOf(alias.deprecated_at), sunset: isoOf(alias.sunset) };
  const moved = { ...config, webhook_alias: dates, services: { ...config.services, ...services } };
  const path = join(world.dataDir, 'gateway.yaml');
  writeFileSync(path, JSON.stringify(moved));
  return { ...world, env: { JWT_SECRET_USER: SIGNING_SECRET, GATEWAY_CONFIG: path } };
}

/** A token of the demo's client, which every contender takes. */
export function tokenOf({ url }: Server, { dataDir }: World): Promise<string> {
  return clientToken(url, readDemoFile(dataDir));
}

/** The request that is measured. */
export function requestOf({ url }: Server, token: string) {
  return { url: `${url}${PATH}`, method: 'GET' as const, headers: { authorization: `Bearer ${token}` } };
}

async function startScript(name: string, folder: string, upstream: string): Promise<Server> {
  const port = await freePort();
  const options: GatewayOptions = { port, upstream, signingSecret: SIGNING_SECRET };
  const path = join(folder, `${name}.json`);
  writeFileSync(path, JSON.stringify(options));
  const args = [join(import.meta.dirname, `${name}.ts`), path];
  const env = { ...process.env, NODE_ENV: 'production' };
  return startServer({ args, env, url: `http://127.0.0.1:${port}`, logPath: join(folder, `${name}.log`) });
}

function isoOf(value: string | Date): string {
  return new Date(value).toISOString();
}

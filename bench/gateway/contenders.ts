import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import {
  clientToken,
  freePort,
  peerArguments,
  ROOT,
  readDemoFile,
  type Server,
  startProduct,
  startServer,
} from '../lib/product.ts';
import { seedWorld, titleOf, type World } from '../lib/world.ts';
import { type GatewayOptions, PATH } from './peer.ts';
import { productionEnv } from './production.ts';

export type PeerName = 'bare' | 'undici' | 'express' | 'fastify';
/** Those that can also keep a record of each request, as the product does. */
export type RecordedName = 'bare' | 'express' | 'fastify';

/** A gateway in front of the common upstream. */
export interface Contender {
  title: string;
  server: Server;
  /** What it has to be asked with; every other contender takes it too. */
  token?: string;
  /** Whether each request has a token of its own. */
  isTokenNew?: boolean;
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
  return { title: TITLES[kind], server: await startScript(kind, folder, upstream) };
}

/** One of the others with a record of each request, both bodies in it, in the product's table of a database. */
export async function startRecorded(
  kind: RecordedName,
  folder: string,
  upstream: string,
  databaseUrl: string,
): Promise<Contender> {
  const records = { file: join(folder, `${kind}-records.txt`), databaseUrl };
  const title = `${TITLES[kind]}; with a record of each request`;
  return { title, server: await startScript(kind, folder, upstream, { records }) };
}

/**
 * How to start the product on a world, its accounts at the upstream, its client with limits of rate and of the month. On
 * servers it is started twice: with limits counted in its process, as those of its peers are, which only a process of
 * all roles can do, and then as a gateway in production, which counts them in Redis.
 */
export function portcullisStarts(world: World, upstream: string): (() => Promise<Contender>)[] {
  const seeded = lazily(() => productOf(world, { accounts: upstream }));
  const start = async (title: string, more: object): Promise<Contender> => {
    const { env, ...product } = await seeded();
    const server = await startProduct({ ...product, env: { ...env, ...more } });
    return { title: `Portcullis, ${title}`, server, token: await tokenOf(server, world) };
  };
  if (world.stores === 'embedded') return [() => start(titleOf(world.stores), {})];
  return [
    () => start('PostgreSQL, Kafka; limits counted in the process', { REDIS_URL: '' }),
    () =>
      start(`${titleOf(world.stores)}, role gateway, in production`, {
        ...productionEnv(world),
        PORTCULLIS_ROLE: 'gateway',
      }),
  ];
}

function lazily<Value>(make: () => Value): () => Value {
  let made: { value: Value } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/** How to start the product so that these services are at these URLs. */
export async function productOf(world: World, services: Record<string, string>, endpoints?: EndpointsOf) {
  await seedWorld(world, 'limits');
  const path = join(world.dataDir, 'gateway.yaml');
  writeFileSync(path, JSON.stringify(gatewayConfig(services, endpoints)));
  return { ...world, env: { JWT_SECRET_USER: SIGNING_SECRET, GATEWAY_CONFIG: path } };
}

/** Other endpoints, out of those of the repository's file. */
export type EndpointsOf = (endpoints: readonly { path: string }[]) => object[];

/** The repository's `gateway.yaml` with these services at these URLs. */
export function gatewayConfig(services: Record<string, string>, endpointsOf: EndpointsOf = (given) => [...given]) {
  const config = parse(readFileSync(join(ROOT, 'gateway.yaml'), 'utf8'));
  const { webhook_alias: alias, endpoints } = config;
  const dates = { deprecated_at: isoOf(alias.deprecated_at), sunset: isoOf(alias.sunset) };
  return {
    ...config,
    webhook_alias: dates,
    services: { ...config.services, ...services },
    endpoints: endpointsOf(endpoints),
  };
}

/** A token of the demo's client, which every contender takes. */
export function tokenOf({ url }: Server, { dataDir }: World): Promise<string> {
  return clientToken(url, readDemoFile(dataDir));
}

/** The request that is measured. */
export function requestOf({ url }: Server, token: string) {
  return { url: `${url}${PATH}`, method: 'GET' as const, headers: { authorization: `Bearer ${token}` } };
}

async function startScript(
  name: string,
  folder: string,
  upstream: string,
  more: Pick<GatewayOptions, 'records'> = {},
): Promise<Server> {
  const port = await freePort();
  const options: GatewayOptions = { port, upstream, signingSecret: SIGNING_SECRET, ...more };
  const path = join(folder, `${name}-${port}.json`);
  writeFileSync(path, JSON.stringify(options));
  const args = peerArguments(join(import.meta.dirname, `${name}.ts`), path);
  const env = { ...process.env, NODE_ENV: 'production' };
  return startServer({ args, env, url: `http://127.0.0.1:${port}`, logPath: join(folder, `${name}-${port}.log`) });
}

function isoOf(value: string | Date): string {
  return new Date(value).toISOString();
}

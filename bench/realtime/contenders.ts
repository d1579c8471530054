import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  clientToken,
  freePort,
  peerArguments,
  readDemoFile,
  type Server,
  startProduct,
  startServer,
} from '../lib/product.ts';
import { titleOf, type World } from '../lib/world.ts';
import type { Audience } from './audience.ts';
import type { PeerOptions } from './peer.ts';

/** A server that delivers, and how its audience is made. */
export interface Contender {
  title: string;
  server: Server;
  audience: Omit<Audience, 'subscribers' | 'each'>;
}

/** The bare server; with the world's brokers its updates come through Kafka. */
export async function startBare(folder: string, world?: World): Promise<Contender> {
  const { KAFKA_BROKERS = '', TOPIC_PREFIX: prefix = '' } = world?.servers ?? {};
  const kafka = world ? { brokers: KAFKA_BROKERS.split(','), prefix } : undefined;
  const server = await startPeer('bare', folder, { kafka });
  const { url } = server;
  return {
    title: kafka ? 'bare node:http SSE behind kafkajs' : 'bare node:http SSE',
    server,
    audience: { url, transport: 'bare', publish: { url: `${url}${kafka ? '/notify' : '/publish'}` } },
  };
}

/** Yoga and graphql-ws, whose audience comes over either. */
export async function startYoga(folder: string): Promise<{ ws: Contender; sse: Contender }> {
  const server = await startPeer('yoga', folder);
  const { url } = server;
  const publish = { url: `${url}/publish` };
  return {
    ws: { title: 'graphql-ws on plain Yoga', server, audience: { url, transport: 'ws', publish } },
    sse: { title: 'SSE of plain Yoga', server, audience: { url, transport: 'sse', publish } },
  };
}

/** The shortest program that keeps what the product keeps of an event, on the stores of a world that no product runs on yet. */
export async function startShortest({ stores, dataDir, servers }: World): Promise<Contender> {
  const { DATABASE_URL: databaseUrl = '', REDIS_URL: redisUrl = '', KAFKA_BROKERS = '', TOPIC_PREFIX = '' } = servers;
  const file = join(dataDir, 'shortest-records.txt');
  const cluster = join(dataDir, 'shortest-cluster');
  if (stores === 'embedded') cpSync(join(dataDir, 'postgres'), cluster, { recursive: true });
  const kafka = { brokers: KAFKA_BROKERS.split(','), prefix: TOPIC_PREFIX };
  const options =
    stores === 'embedded' ? { embedded: { cluster, file } } : { servers: { databaseUrl, redisUrl, file }, kafka };
  const server = await startPeer('shortest', dataDir, options);
  const { url } = server;
  return {
    title: `node:http SSE that keeps as much, ${titleOf(stores)}`,
    server,
    audience: { url, transport: 'bare', publish: { url: `${url}/notify` } },
  };
}

/** The product on a seeded world, one process that does all; its audience comes over either. */
export async function startPortcullis(world: World): Promise<{ sse: Contender; ws: Contender }> {
  return contendersOf(world, await startProduct(world));
}

/** The product that runs on a world, for audiences over either. */
export async function contendersOf(world: World, server: Server): Promise<{ sse: Contender; ws: Contender }> {
  const demo = readDemoFile(world.dataDir);
  const { username, password } = demo.webhook;
  const token = await clientToken(server.url, demo);
  const title = `Portcullis, ${titleOf(world.stores)}`;
  const audience = {
    url: server.url,
    token,
    register: { url: `${server.url}/graphql`, databaseUrl: world.servers.DATABASE_URL },
    publish: {
      url: `${server.url}/v2/webhooks/custodial`,
      authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`,
    },
  };
  const sse: Contender = { title: `${title}, SSE`, server, audience: { ...audience, transport: 'sse' } };
  const ws: Contender = { title: `${title}, graphql-transport-ws`, server, audience: { ...audience, transport: 'ws' } };
  return { sse, ws };
}

/** A replica of it that takes no notification: its audience, and no more. */
export async function startReplica(
  world: World,
  { title, audience }: Contender,
  env: Record<string, string> = {},
): Promise<Contender> {
  const server = await startProduct({ ...world, env: { ...env, PORTCULLIS_ROLE: 'gateway' } });
  return { title: `${title}, of a replica`, server, audience: { ...audience, url: server.url } };
}

async function startPeer(name: string, folder: string, more: Omit<PeerOptions, 'port'> = {}): Promise<Server> {
  const port = await freePort();
  const options: PeerOptions = { port, ...more };
  const path = join(folder, `${name}-${port}.json`);
  writeFileSync(path, JSON.stringify(options));
  const args = peerArguments(join(import.meta.dirname, `${name}.ts`), path);
  const env = { ...process.env, NODE_ENV: 'production' };
  return startServer({ args, env, url: `http://127.0.0.1:${port}`, logPath: join(folder, `${name}-${port}.log`) });
}

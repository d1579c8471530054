import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TOPICS } from '../../src/events/bus/topics.ts';
import { seedTransactions } from '../consume/transactions.ts';
import { SIGNING_SECRET } from '../gateway/contenders.ts';
import { productionEnv } from '../gateway/production.ts';
import { freePort, peerArguments, readDemoFile, type Server, startProduct, startServer } from '../lib/product.ts';
import { migrateWorld } from '../lib/topics.ts';
import { seedWorld, titleOf, type World } from '../lib/world.ts';
import type { BareOptions } from './bare.ts';
import type { WebhookLoad } from './load.ts';

export const PATH = '/v2/webhooks/custodial';
/** How many transactions the notifications are of. */
export const TRANSACTIONS = 100_000;

/** A server that takes notifications, and how it is asked. */
export interface Contender {
  title: string;
  server: Server;
  asked: Pick<WebhookLoad, 'port' | 'path' | 'headers'>;
}

/** The product on a world: embedded all of it, on servers the gateway alone, in production, as beside workers. */
export async function startPortcullis(world: World): Promise<Contender> {
  const server = await startProduct(await prepared(world));
  const role = world.stores === 'embedded' ? 'and it applies them' : 'role gateway, in production';
  return { title: `Portcullis, ${titleOf(world.stores)}: ${role}`, server, asked: askedOf(server, world) };
}

/** How to start the product on a world, once it is filled: the transactions are registered. */
export async function prepared(world: World) {
  await seedWorld(world);
  if (world.stores === 'embedded') {
    await seedTransactions(world, TRANSACTIONS);
    return world;
  }
  await migrateWorld(world);
  return { ...world, env: { ...productionEnv(world), JWT_SECRET_USER: SIGNING_SECRET, PORTCULLIS_ROLE: 'gateway' } };
}

/** How the product on this world is notified. */
export function askedOf({ url }: Server, { dataDir, stores }: World): Contender['asked'] {
  const { username, password } = readDemoFile(dataDir).webhook;
  const pair = stores === 'embedded' ? [username, password] : ['chain-processor', password];
  const authorization = `Basic ${Buffer.from(pair.join(':')).toString('base64')}`;
  return { ...target(url), headers: { authorization, 'content-type': 'application/json' } };
}

/** The ways in which a bare server sends; `recorded` coalesces and keeps a record of each request. */
type BareKind = 'coalescing' | 'singly' | 'recorded';

const BARE_TITLES: Record<BareKind, string> = {
  coalescing: 'bare node:http, kafkajs, coalescing',
  singly: 'bare node:http, kafkajs, a send for each request',
  recorded: 'bare node:http, kafkajs, coalescing, with a record of each request',
};

/** A bare server that sends to the topics of a world; `folder` takes its options and its log. */
export async function startBare(world: World, folder: string, name: BareKind): Promise<Contender> {
  const { KAFKA_BROKERS = '', TOPIC_PREFIX = '' } = world.servers;
  const topics = [TOPICS.admin, TOPICS.user].map((topic) => TOPIC_PREFIX + topic);
  const port = await freePort();
  const records = { file: join(folder, 'records.txt'), databaseUrl: world.servers.DATABASE_URL ?? '' };
  const options: BareOptions = {
    port,
    brokers: KAFKA_BROKERS.split(','),
    topics,
    coalesces: name !== 'singly',
    ...(name === 'recorded' ? { records } : {}),
  };
  const path = join(folder, `${name}.json`);
  writeFileSync(path, JSON.stringify(options));
  const server = await startServer({
    args: peerArguments(join(import.meta.dirname, 'bare.ts'), path),
    env: { ...process.env, NODE_ENV: 'production' },
    url: `http://127.0.0.1:${port}`,
    logPath: join(folder, `${name}.log`),
  });
  return {
    title: BARE_TITLES[name],
    server,
    asked: { ...target(server.url), headers: { 'content-type': 'application/json' } },
  };
}

function target(url: string) {
  return { port: Number(new URL(url).port), path: PATH };
}

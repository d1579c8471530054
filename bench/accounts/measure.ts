import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { request } from 'undici';
import { type Effort, type PairedRound, pairRounds } from '../lib/pairs.ts';
import {
  clientToken,
  freePort,
  peerArguments,
  readDemoFile,
  type Server,
  startProduct,
  startServer,
} from '../lib/product.ts';
import type { RecordOptions } from '../lib/shortest-record.ts';
import { seedWorld, titleOf, type World } from '../lib/world.ts';
import type { BareOptions } from './bare.ts';
import { CONNECTIONS, type Contender, roundOf } from './rounds.ts';
import type { Statement } from './statements.ts';

const BARE = join(import.meta.dirname, 'bare.ts');

/** A contender's rounds beside those of the bare route. */
export interface Compared {
  title: string;
  rounds: PairedRound[];
}

/**
 * Compares the product on fresh stores with the bare route on the same rows; on servers also what a record of each
 * request costs the bare route, and a handler of node:http, at least. The last one is the bare route.
 */
export async function compare(world: World, effort: Effort): Promise<Compared[]> {
  const statements = await seedWorld(world);
  await using servers = new AsyncDisposableStack();
  const started = async (starting: Promise<Server>) => servers.adopt(await starting, (server) => server.stop());
  const bare = await started(startBare(world, statements));
  const product = await started(startProduct(world));
  const token = await clientToken(product.url, readDemoFile(world.dataDir));
  await assertSameBody(product, bare, token);
  const base: Titled = { title: BARE_TITLE, server: bare, token: undefined };
  const contenders: Titled[] = [{ title: `Portcullis, ${titleOf(world.stores)}`, server: product, token }];
  for (const frame of world.stores === 'servers' ? FRAMES : []) {
    const server = await started(startBare(world, statements, { frame, records: recordsOf(world, frame) }));
    await assertSameBody(product, server, token);
    contenders.push({ title: RECORDED_TITLES[frame], server, token: undefined });
  }
  const run = (contender: Titled, requests: number) => roundOf(contender, requests, CONNECTIONS);
  const rounds = await pairRounds({ contenders, base, effort, run });
  return [...contenders, base].map((contender) => ({
    title: contender.title,
    rounds: rounds.get(contender) ?? [],
  }));
}

interface Titled extends Contender {
  title: string;
}

const BARE_TITLE = 'bare Express';
const FRAMES = ['express', 'http'] as const;
const RECORDED_TITLES: Record<(typeof FRAMES)[number], string> = {
  express: 'bare Express with a record of each request',
  http: 'bare node:http with a record of each request',
};

function recordsOf({ dataDir, servers }: World, name: string): RecordOptions {
  return { file: join(dataDir, `records-${name}.txt`), databaseUrl: servers.DATABASE_URL ?? '' };
}

/** Starts the bare route on the rows of a world. */
export async function startBare(
  { dataDir, servers }: World,
  statements: Statement[],
  more: Pick<BareOptions, 'page' | 'frame' | 'records'> = {},
): Promise<Server> {
  const port = await freePort();
  const cluster = join(dataDir, 'bare-cluster');
  const databaseUrl = servers.DATABASE_URL;
  if (databaseUrl === undefined) cpSync(join(dataDir, 'postgres'), cluster, { recursive: true });
  const rows = databaseUrl === undefined ? { cluster } : { databaseUrl };
  const options: BareOptions = { port, statements, ...rows, ...more };
  const path = join(dataDir, `bare-${port}.json`);
  writeFileSync(path, JSON.stringify(options));
  const url = `http://127.0.0.1:${port}`;
  const env = { ...process.env, NODE_ENV: 'production' };
  return startServer({ args: peerArguments(BARE, path), env, url, logPath: join(dataDir, `bare-${port}.log`) });
}

/** @throws where the two do not answer with the same bytes. */
export async function assertSameBody(product: Server, bare: Server, token: string, page = 1): Promise<void> {
  const headers = { authorization: `Bearer ${token}` };
  const [given, expected] = await Promise.all(
    [product, bare].map(async ({ url }) => {
      const answer = await request(`${url}/v1/accounts?limit=10&page=${page}`, { headers });
      return answer.body.text();
    }),
  );
  if (given !== expected) throw new Error(`the bodies differ:\n${given}\n${expected}`);
}

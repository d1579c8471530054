import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { request } from 'undici';
import { clientToken, freePort, readDemoFile, type Server, startProduct, startServer } from '../lib/product.ts';
import { median } from '../lib/statistics.ts';
import { seedWorld, type World } from '../lib/world.ts';
import type { BareOptions } from './bare.ts';
import { type Pair, runRounds } from './rounds.ts';
import type { Statement } from './statements.ts';

const BARE = join(import.meta.dirname, 'bare.ts');

export interface Effort {
  pairs: number;
  requests: number;
  warmUp: number;
}

/** CPU of the product and of the bare route, µs a request, and their ratio: the median of the pairs' ratios. */
export interface Comparison {
  product: number;
  bare: number;
  ratio: number;
  lowest: number;
  highest: number;
}

/** Compares the product on fresh stores with the bare route on the same rows. */
export async function compare(world: World, effort: Effort): Promise<Comparison> {
  const statements = await seedWorld(world);
  const bare = await startBare(world, statements);
  try {
    const product = await startProduct(world);
    try {
      const token = await clientToken(product.url, readDemoFile(world.dataDir));
      await assertSameBody(product, bare, token);
      const pairs = await runRounds({
        product: { server: product, token },
        bare: { server: bare, token: undefined },
        ...effort,
      });
      return comparisonOf(pairs);
    } finally {
      await product.stop();
    }
  } finally {
    await bare.stop();
  }
}

/** Starts the bare route on the rows of a world. */
export async function startBare(
  { dataDir, servers }: World,
  statements: Statement[],
  more: Pick<BareOptions, 'page' | 'frame'> = {},
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
  return startServer({ args: [BARE, path], env: process.env, url, logPath: join(dataDir, `bare-${port}.log`) });
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

function comparisonOf(pairs: readonly Pair[]): Comparison {
  const ratios = pairs.map(({ product, bare }) => product / bare);
  return {
    product: median(pairs.map(({ product }) => product)),
    bare: median(pairs.map(({ bare }) => bare)),
    ratio: median(ratios),
    lowest: Math.min(...ratios),
    highest: Math.max(...ratios),
  };
}

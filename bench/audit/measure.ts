import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { request } from 'undici';
import { type Effort, pairRounds, type Summary, summaryOf } from '../lib/pairs.ts';
import { freePort, peerArguments, type Server, startProduct, startServer } from '../lib/product.ts';
import { cpuOfLoad, idleCpuOf } from '../lib/round.ts';
import type { World } from '../lib/world.ts';
import type { BareOptions, Frame } from './bare.ts';

const CONNECTIONS = 32;
const WITHOUT_AUDIT = join(import.meta.dirname, 'without-audit.ts');
const BARE = join(import.meta.dirname, 'bare.ts');

/** A server of GET /health. */
interface Contender {
  title: string;
  server: Server;
  /** What its ratio to bare Express should be at most. */
  aim?: number;
}

export interface Result extends Summary {
  contender: Contender;
  /** Milliseconds of CPU a second without a request. */
  idleMs: number;
}

/** How many of the product run side by side, each on a world of its own. */
export const WORLDS = 3;

/** The product with and without its audit beside bare servers with the same answer; the last result is bare Express's. */
export async function compare(worlds: readonly World[], effort: Effort): Promise<Result[]> {
  const [asShipped, quiet, unaudited] = worlds;
  if (!asShipped || !quiet || !unaudited) throw new Error(`${WORLDS} worlds are needed`);
  await using servers = new AsyncDisposableStack();
  const started = async (title: string, starting: Promise<Server>, aim?: number): Promise<Contender> => {
    const server = await starting;
    servers.defer(() => server.stop());
    return { title, server, ...(aim === undefined ? {} : { aim }) };
  };
  const on = await started('Portcullis', startProduct(asShipped), 2.5);
  const version = (await healthOf(on)).version;
  const bare = (frame: Frame) => startBare(asShipped, { frame, version });
  const contenders = [
    on,
    await started('Portcullis, log from warnings on', startProduct({ ...quiet, env: { LOG_LEVEL: 'warn' } })),
    await started('Portcullis without audit', startProduct({ ...unaudited, main: WITHOUT_AUDIT }), 1.5),
    await started('bare Express without ETag and X-Powered-By', bare('plain-express')),
    await started('bare node:http', bare('http')),
  ];
  const base = await started('bare Express', bare('express'));
  for (const contender of contenders) await check(contender, base);
  const run = ({ server }: Contender, requests: number) =>
    cpuOfLoad(server, { url: `${server.url}/health`, method: 'GET', headers: {}, connections: CONNECTIONS, requests });
  const rounds = await pairRounds({ contenders, base, effort, run });
  const all = [...contenders, base];
  const idle = await idleCpuOf(all.map(({ server }) => server));
  return all.map((contender, index) => ({
    contender,
    idleMs: idle[index] ?? 0,
    ...summaryOf(rounds.get(contender) ?? []),
  }));
}

function startBare({ dataDir }: World, options: Omit<BareOptions, 'port'>): Promise<Server> {
  return freePort().then((port) => {
    const path = join(dataDir, `bare-${options.frame}.json`);
    writeFileSync(path, JSON.stringify({ ...options, port }));
    const env = { ...process.env, NODE_ENV: 'production' };
    return startServer({
      args: peerArguments(BARE, path),
      env,
      url: `http://127.0.0.1:${port}`,
      logPath: `${path}.log`,
    });
  });
}

/** @throws where two answers differ in more than the time since the start. */
async function check(contender: Contender, base: Contender): Promise<void> {
  const [given, expected] = [await healthOf(contender), await healthOf(base)].map((health) =>
    JSON.stringify({ ...health, uptime: 0 }),
  );
  if (given !== expected) throw new Error(`${contender.title} answers ${given}, ${base.title} ${expected}`);
}

async function healthOf({ server }: Contender): Promise<{ version: string }> {
  const { body } = await request(`${server.url}/health`);
  return (await body.json()) as { version: string };
}

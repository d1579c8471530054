import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { request } from 'undici';
import { memoryMb } from '../lib/process-stats.ts';
import {
  clientToken,
  freePort,
  readDemoFile,
  type ServerAddresses,
  startProduct,
  startServer,
} from '../lib/product.ts';

/** One start, in milliseconds since the process was spawned; memory in megabytes after the idle time. */
export interface Start {
  healthMs: number;
  /** A token was given, and with it a page of accounts. */
  pageMs: number;
  residentMb: number;
  anonymousMb: number;
  /** A bare script's time to its first answer, measured right after; undefined where it has no peer. */
  bareMs?: number | undefined;
}

interface StartOptions {
  dataDir: string;
  servers?: ServerAddresses;
  /** Where Node keeps compiled code from one start to the next. */
  compileCache: string;
  idleMs: number;
}

/** Starts the product, asks for its first good answers, lets it idle, and stops it. */
export async function startOnce({ dataDir, servers = {}, compileCache, idleMs }: StartOptions): Promise<Start> {
  const env = { NODE_COMPILE_CACHE: compileCache };
  const product = await startProduct({ dataDir, servers, env });
  try {
    const healthMs = performance.now() - product.startedAt;
    await firstPage(product.url, dataDir);
    const pageMs = performance.now() - product.startedAt;
    await delay(idleMs);
    const { resident, anonymous } = memoryMb(product.pid);
    return { healthMs, pageMs, residentMb: resident, anonymousMb: anonymous };
  } finally {
    await product.stop();
  }
}

/** Starts a bare script on PGlite, which makes a cluster where its folder has none; gives the time to its first answer. */
export async function startBare(dataDir: string, compileCache: string): Promise<number> {
  const port = await freePort();
  const server = await startServer({
    args: [join(import.meta.dirname, 'bare.ts'), join(dataDir, 'bare'), `${port}`],
    env: { ...process.env, NODE_COMPILE_CACHE: compileCache },
    url: `http://127.0.0.1:${port}`,
    logPath: join(dataDir, 'bare.log'),
  });
  const ms = performance.now() - server.startedAt;
  await server.stop();
  return ms;
}

async function firstPage(url: string, dataDir: string): Promise<void> {
  const token = await clientToken(url, readDemoFile(dataDir));
  const headers = { authorization: `Bearer ${token}` };
  const { statusCode, body } = await request(`${url}/v1/accounts?limit=10`, { headers });
  const text = await body.text();
  if (statusCode !== 200) throw new Error(`no page of accounts: ${statusCode} ${text}`);
}

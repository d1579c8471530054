import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { request } from 'undici';
import { bundlePackages } from '../../scripts/bundle-packages.ts';
import type { Demo } from '../../src/app/demo/demo.ts';
import { tell } from './report.ts';

export const ROOT = resolve(import.meta.dirname, '../..');
const POLL_MS = 5;
const START_TIMEOUT_MS = 60_000;

/** The three variables that switch the product to real servers; empty: its embedded parts. */
export type ServerAddresses = Partial<Record<'DATABASE_URL' | 'REDIS_URL' | 'KAFKA_BROKERS' | 'TOPIC_PREFIX', string>>;

export interface ProductOptions {
  dataDir: string;
  servers?: ServerAddresses;
  env?: Record<string, string>;
  /** Options of Node beside those of `npm start`. */
  nodeArgs?: readonly string[];
  /** A script that is run in the place of the product's own. */
  main?: string;
}

export interface Server {
  pid: number;
  url: string;
  /** `performance.now()` when the process was started. */
  startedAt: number;
  stop(): Promise<void>;
}

export interface DemoFile extends Demo {
  webhook: { username: string; password: string };
}

/** What `npm start` and the build of the image do first. */
const bundled = bundlePackages();

/** Where every server keeps compiled code, as the product's image and `npm start` have it. */
const COMPILE_CACHE = join(tmpdir(), 'node-compile-cache');

/** The variables of the product's surroundings: nothing of the caller's own reaches it. */
export function productEnv({ dataDir, servers, env }: ProductOptions): NodeJS.ProcessEnv {
  const none = { NODE_ENV: '', DATABASE_URL: '', REDIS_URL: '', KAFKA_BROKERS: '', TOPIC_PREFIX: '' };
  return { ...process.env, ...none, LOG_LEVEL: 'info', DATA_DIR: dataDir, ...servers, ...env };
}

/**
 * Starts the product as `npm start` does, or on servers as its image does, its output into a file, and returns when
 * GET /health answers 200; a worker, which has none, when its operator's listener says that it is ready.
 */
export async function startProduct(options: ProductOptions): Promise<Server> {
  await bundled;
  const [port, adminPort] = [options.env?.PORT ?? (await freePort()), await freePort()];
  const env = { ...productEnv(options), PORT: `${port}`, ADMIN_PORT: `${adminPort}` };
  const nodeOptions = startArguments(options.servers);
  const main = nodeOptions.pop() ?? '';
  const args = [...(options.nodeArgs ?? []), ...nodeOptions, options.main ?? main];
  const logPath = join(options.dataDir, `bench-${port}.log`);
  const isWorker = options.env?.PORTCULLIS_ROLE === 'worker';
  const at = isWorker
    ? { url: `http://127.0.0.1:${adminPort}`, ready: '/readyz' }
    : { url: `http://127.0.0.1:${port}` };
  return startServer({ args, env, ...at, logPath });
}

interface ServerOptions {
  /** What is run; this Node unless given. */
  command?: string;
  args: readonly string[];
  env: NodeJS.ProcessEnv;
  url: string;
  /** What answers 200 once it is ready; `/health` unless given. */
  ready?: string;
  logPath: string;
}

/** Starts a server and returns when it is ready. */
export async function startServer(options: ServerOptions): Promise<Server> {
  const { command = process.execPath, args, url, ready = '/health', logPath } = options;
  const env = { NODE_COMPILE_CACHE: COMPILE_CACHE, ...options.env };
  const log = openSync(logPath, 'w');
  const startedAt = performance.now();
  const child = spawn(command, args, { cwd: ROOT, env, stdio: ['ignore', log, log] });
  closeSync(log);
  const exited = once(child, 'exit');
  let isStopping = false;
  const stop = async () => {
    isStopping = true;
    child.kill('SIGTERM');
    await exited;
  };
  child.once('exit', (code, signal) => {
    if (!isStopping)
      tell(`${args.join(' ')} ended with ${code ?? signal}: ${readFileSync(logPath, 'utf8').slice(-2_000)}`);
  });
  try {
    await healthy(`${url}${ready}`, () => child.exitCode !== null || child.signalCode !== null);
  } catch (error) {
    child.kill('SIGKILL');
    throw new Error(`${command} ${args.at(-1)} did not start: ${readFileSync(logPath, 'utf8').slice(-2_000)}`, {
      cause: error,
    });
  }
  return { pid: child.pid ?? 0, url, startedAt, stop };
}

async function healthy(url: string, hasEnded: () => boolean): Promise<void> {
  const deadline = performance.now() + START_TIMEOUT_MS;
  while (performance.now() < deadline && !hasEnded()) {
    const status = await statusOf(url);
    if (status === 200) return;
    await delay(POLL_MS);
  }
  throw new Error(hasEnded() ? 'it ended' : `no good health after ${START_TIMEOUT_MS} ms`);
}

async function statusOf(url: string): Promise<number | undefined> {
  try {
    const { statusCode, body } = await request(url);
    await body.dump();
    return statusCode;
  } catch {
    // Nobody listens yet.
    return undefined;
  }
}

/** The demo that the product or the seeding wrote into its folder. */
export function readDemoFile(dataDir: string): DemoFile {
  return JSON.parse(readFileSync(join(dataDir, 'demo.json'), 'utf8'));
}

/** An access token of the demo client. */
export async function clientToken(url: string, { client }: Demo): Promise<string> {
  const { statusCode, body } = await request(`${url}/v2/oauth/token`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ grant_type: 'client_credentials', ...client }),
  });
  const text = await body.text();
  if (statusCode !== 200) throw new Error(`no token: ${statusCode} ${text}`);
  return JSON.parse(text).access_token;
}

/** The ports that were given out: a system may name the same one twice in a row. */
const takenPorts = new Set<number>();

/** A port of 127.0.0.1 that nobody listens on, and that was not given out before. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('a TCP server has a port');
  if (takenPorts.has(address.port)) return freePort();
  takenPorts.add(address.port);
  return address.port;
}

/** The arguments of Node that run another server: with the options that the product has on servers. */
export function peerArguments(...script: readonly string[]): string[] {
  return [...imageCommand().slice(1, -1), ...script];
}

/** What `npm start` passes to Node, and on servers what the image does. */
function startArguments({ DATABASE_URL }: ServerAddresses = {}): string[] {
  const [command, ...args] = DATABASE_URL ? imageCommand() : npmCommand();
  if (command !== 'node') throw new Error(`the product is no longer started by node: ${command}`);
  return args;
}

function npmCommand(): string[] {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  return String(scripts.start)
    .replace(/^.*exec /, '')
    .split(' ');
}

function imageCommand(): string[] {
  const command = /^CMD (\[.*\])$/m.exec(readFileSync(join(ROOT, 'Dockerfile'), 'utf8'))?.[1];
  if (command === undefined) throw new Error('the Dockerfile has no CMD');
  return JSON.parse(command);
}

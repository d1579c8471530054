import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { DEMO, GENERATED, JWT_SECRETS, PUBLIC_URL, SIGNING_SECRET } from './values.ts';

/** A running instance, embedded, with the demo of `values.ts`. */
export interface Instance {
  url: string;
  adminUrl: string;
  dataDir: string;
  /** Stops it as an operator would and gives the lines of its log. */
  stop(): Promise<Record<string, unknown>[]>;
}

/** Starts the project in a folder as its `npm start` does, on a fresh data folder and free ports. */
export async function startInstance(project: string, variables: Record<string, string>): Promise<Instance> {
  const dataDir = await mkdtemp(join(tmpdir(), 'portcullis-exchanges-'));
  for (const [file, kept] of Object.entries({ 'demo.json': DEMO, 'secrets.json': GENERATED })) {
    await writeFile(join(dataDir, file), JSON.stringify(kept), { mode: 0o600 });
  }
  const { scripts } = JSON.parse(await readFile(join(project, 'package.json'), 'utf8')) as {
    scripts: { start: string };
  };
  const { PATH = '', HOME = '' } = process.env;
  const env = {
    PATH: `${dirname(process.execPath)}${delimiter}${PATH}`,
    HOME,
    DATA_DIR: dataDir,
    PORT: '0',
    ADMIN_PORT: '0',
    PUBLIC_URL,
    JWT_SECRET_USER_PREVIOUS: JWT_SECRETS.userBefore,
    WEBHOOK_SIGNING_SECRET: SIGNING_SECRET,
    LOG_LEVEL: 'debug',
    ...variables,
  };
  const child = spawn('sh', ['-c', scripts.start], { cwd: project, env, stdio: ['ignore', 'pipe', 'pipe'] });
  process.once('exit', () => child.kill('SIGKILL'));
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const ended = once(child, 'close');
  const lines = () =>
    stdout
      .split('\n')
      .filter((line) => line.startsWith('{"level"'))
      .map(parsed);
  const deadline = Date.now() + 90_000;
  for (;;) {
    const started = lines().find(({ msg }) => msg === 'started');
    if (started) {
      const stop = async () => {
        child.kill('SIGTERM');
        await ended;
        return lines();
      };
      return { url: String(started.base_url), adminUrl: String(started.admin_url), dataDir, stop };
    }
    if (child.exitCode !== null || Date.now() > deadline) throw new Error(`${project} does not start: ${stderr}`);
    await new Promise((tick) => setTimeout(tick, 50));
  }
}

/** Removes what an instance has left. */
export async function removeData({ dataDir }: Instance): Promise<void> {
  if (existsSync(join(dataDir, 'demo.json'))) await rm(dataDir, { recursive: true, force: true });
}

function parsed(line: string): Record<string, unknown> {
  return JSON.parse(line);
}

/** A server of the recorder's own. */
export interface Upstream {
  url: string;
  /** Ends it, its connections too. */
  close(): void;
}

async function listening(server: Server): Promise<Upstream> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  server.unref();
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}

/** A node of the Ethereum kind that always says the same. */
export function gasNode(): Promise<Upstream> {
  const history = {
    oldestBlock: '0x10',
    baseFeePerGas: ['0x3b9aca00', '0x77359400'],
    gasUsedRatio: [0.5],
    reward: [['0x1', '0x2', '0x3']],
  };
  const says: Record<string, unknown> = { eth_chainId: '0x1', eth_feeHistory: history };
  return listening(
    createServer(async (req, res) => {
      const { id, method } = JSON.parse((await req.toArray()).join(''));
      res
        .setHeader('content-type', 'application/json')
        .end(JSON.stringify({ jsonrpc: '2.0', id, result: says[method] }));
    }),
  );
}

/** A service of another process: it answers with what has reached it. */
export function echo(): Promise<Upstream> {
  return listening(
    createServer(async (req, res) => {
      const body = (await req.toArray()).join('');
      const headers = Object.entries(req.headersDistinct).sort(([a], [b]) => (a < b ? -1 : 1));
      res.statusCode = Number(req.headers['x-answer-status'] ?? 200);
      res.setHeader('content-type', 'application/json').setHeader('x-of-upstream', ['a', 'b']);
      res.end(JSON.stringify({ method: req.method, url: req.url, headers, body }));
    }),
  );
}

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { listening } from '../../test/support/gateway/forwarder.ts';
import { startInstance as startProcess } from '../../test/support/start/process.ts';
import { DEMO, GENERATED, JWT_SECRETS, PUBLIC_URL, SIGNING_SECRET } from './values.ts';

/** A running instance, embedded, with the demo of `values.ts`; disposing of it removes its files. */
export interface Instance extends AsyncDisposable {
  url: string;
  adminUrl: string;
  dataDir: string;
  /** Stops it as an operator would, and returns the lines of its log. */
  stop(): Promise<Record<string, unknown>[]>;
}

/** Starts the project in a folder, on a fresh data folder and free ports. */
export async function startInstance(project: string, variables: Record<string, string>): Promise<Instance> {
  const dataDir = await mkdtemp(join(tmpdir(), 'portcullis-exchanges-'));
  for (const [file, kept] of Object.entries({ 'demo.json': DEMO, 'secrets.json': GENERATED })) {
    await writeFile(join(dataDir, file), JSON.stringify(kept), { mode: 0o600 });
  }
  const env = {
    DATA_DIR: dataDir,
    PUBLIC_URL,
    JWT_SECRET_USER_PREVIOUS: JWT_SECRETS.userBefore,
    WEBHOOK_SIGNING_SECRET: SIGNING_SECRET,
    LOG_LEVEL: 'debug',
    ...variables,
  };
  const running = await startProcess(env, [], [], project);
  process.once('exit', () => void running[Symbol.asyncDispose]());
  return {
    url: running.baseUrl,
    adminUrl: running.adminUrl,
    dataDir,
    async stop() {
      const { stdout } = await running.kill('SIGTERM');
      const lines = stdout.split('\n').filter((line) => line.startsWith('{"level"'));
      return lines.map((line) => JSON.parse(line));
    },
    async [Symbol.asyncDispose]() {
      await running[Symbol.asyncDispose]();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** A server of the recorder's own. */
export interface Upstream extends Disposable {
  url: string;
}

/** Starts a service of another process: it answers with what has reached it. Disposing cuts its connections too. */
export async function echo(): Promise<Upstream> {
  const server = createServer(async (req, res) => {
    const body = (await req.toArray()).join('');
    const headers = Object.entries(req.headersDistinct).sort(([a], [b]) => (a < b ? -1 : 1));
    res.statusCode = Number(req.headers['x-answer-status'] ?? 200);
    res.setHeader('content-type', 'application/json').setHeader('x-of-upstream', ['a', 'b']);
    res.end(JSON.stringify({ method: req.method, url: req.url, headers, body }));
  });
  return { url: await listening(server), [Symbol.dispose]: () => server.close(() => undefined).closeAllConnections() };
}

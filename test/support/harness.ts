import { existsSync } from 'node:fs';
import { constants, cp, mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inject } from 'vitest';
import type { Overrides } from '../../src/app/context.ts';
import type { Demo } from '../../src/app/demo/demo.ts';
import { ensureDemo } from '../../src/app/demo/ensure-demo.ts';
import { type Service, startService } from '../../src/app/service.ts';
import { ALL_TOPICS } from '../../src/events/bus/topics.ts';
import { silentLog } from '../../src/lib/log.ts';
import { readConfig } from '../../src/platform/config/config.ts';
import { readSecrets } from '../../src/platform/config/secrets.ts';
import { beforeTests } from './harness/before-tests.ts';
import { asService } from './harness/database-roles.ts';
import { copyOfDatabase, embeddedClusterCopy, onlyOne, realTemplate } from './harness/databases.ts';
import { SecretWatch } from './harness/secret-watch.ts';
import { stopped } from './harness/stops.ts';
import { hashCheaply, makeLoginsCheap } from './oauth/cheap-hash.ts';
import type {} from './services/global-setup.ts';
import { createTopics, deleteTopics, freshRedis, topicPrefix } from './services/isolation.ts';
import { startedDatabase } from './services/pg-client.ts';
import { serviceAddress } from './services/real.ts';

export interface StartOptions {
  env?: Record<string, string>;
  overrides?: Overrides;
  /** A folder of an earlier instance, which is kept. */
  dataDir?: string;
}

export interface Portcullis extends AsyncDisposable {
  service: Service;
  url: string;
  dataDir: string;
  demo: Demo;
  webhook: { username: string; password: string };
  /** The variables that it was started with. */
  env: Record<string, string>;
  /** A request to a path; JSON bodies are encoded. */
  call(method: string, path: string, options?: CallOptions): Promise<Answer>;
  /** An access token of the demo client (or of another one). */
  clientToken(client?: Demo['client']): Promise<string>;
  /** An access token of the demo supervisor. */
  loginToken(): Promise<string>;
}

interface CallOptions {
  token?: string;
  headers?: Record<string, string>;
  json?: unknown;
  body?: string | Buffer;
}

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  json: ReturnType<typeof JSON.parse>;
}

/**
 * The whole service in this process with the demo, on free ports; disposing stops it and removes its data. Its database is one of its
 * own on the provisioned PostgreSQL, by the role that services have in production, which takes a fraction of an embedded one's time; its other stores are embedded. All of them are
 * where there is no PostgreSQL, or where `dataDir` is given.
 */
export async function startPortcullis(options: StartOptions = {}): Promise<Portcullis> {
  if (options.dataDir !== undefined || inject('addresses').postgres === undefined) return startEmbedded(options);
  const template = await startedTemplate();
  const dataDir = await folderLike(template.dataDir);
  const database = await copyOfDatabase(template.database);
  const env = { DATA_DIR: dataDir, DATABASE_URL: asService(database.url), ...options.env };
  const started = await start(dataDir, env, options.overrides);
  return portcullis(started, await ensureDemo(started.service.context), env, async () => {
    await database.drop();
    await remove(dataDir);
  });
}

/** Starts one before the tests of a file or group, and disposes of it after them. */
export function usePortcullis(): Portcullis {
  return beforeTests(startPortcullis);
}

/** The whole service in this process, on embedded stores (but those that `env` names) and free ports; disposing stops it and removes its data. */
export async function startEmbedded(options: StartOptions = {}): Promise<Portcullis> {
  const dataDir = options.dataDir ?? (await startedDataDir());
  const env = { DATA_DIR: dataDir, ...options.env };
  const started = await start(dataDir, env, options.overrides);
  const demo = started.service.demo ?? (await ensureDemo(started.service.context));
  return portcullis(started, demo, env, options.dataDir !== undefined ? async () => undefined : () => remove(dataDir));
}

/** The whole service in this process, on the real PostgreSQL and Redis, which its replicas share, without a broker. */
export async function startOnSharedStores({ env, ...options }: StartOptions = {}): Promise<Portcullis> {
  const redis = await freshRedis();
  const started = await startPortcullis({ ...options, env: { REDIS_URL: redis.url, ...env } });
  return {
    ...started,
    [Symbol.asyncDispose]: async () => {
      await started[Symbol.asyncDispose]();
      await redis.release();
    },
  };
}

/** The whole service in this process, on the real PostgreSQL, Redis and Kafka, or a broker that `env` names. */
export async function startOnRealServers({ env, ...options }: StartOptions = {}): Promise<Portcullis> {
  const shared = serviceAddress('kafka');
  const at = { KAFKA_BROKERS: shared, TOPIC_PREFIX: topicPrefix(), ...env };
  await createTopics(at.KAFKA_BROKERS, at.TOPIC_PREFIX, ALL_TOPICS);
  const started = await startOnSharedStores({ ...options, env: at });
  return {
    ...started,
    [Symbol.asyncDispose]: async () => {
      await started[Symbol.asyncDispose]();
      // Those of another broker go with it.
      if (at.KAFKA_BROKERS === shared) await deleteTopics(shared, at.TOPIC_PREFIX);
    },
  };
}

/** One more replica of an instance on real servers: the same stores and secrets, an audit spool of its own. */
export async function startReplica(of: Portcullis, options: StartOptions = {}): Promise<Portcullis> {
  const spool = await mkdtemp(join(tmpdir(), 'portcullis-replica-'));
  const env = { ...of.env, AUDIT_SPOOL_DIR: spool, ...options.env };
  const started = await start(of.dataDir, env, options.overrides);
  return portcullis(started, of.demo, env, () => remove(spool));
}

/** A `DATA_DIR` with secrets and a migrated database, so that a start need not make one. */
export async function newDataDir(): Promise<string> {
  const dataDir = await mkdtemp(join(tmpdir(), 'portcullis-test-'));
  const { config, env } = readConfig({ DATA_DIR: dataDir });
  readSecrets(config, env);
  await rename(await embeddedClusterCopy(), join(dataDir, 'postgres'));
  return dataDir;
}

/** A `DATA_DIR` of an embedded instance that was started once: it has its secrets and its demo. The first of a run starts it. */
export async function startedDataDir(): Promise<string> {
  const template = join(inject('runFolder'), 'started');
  if (!existsSync(template)) {
    const made = await newDataDir();
    const first = await startEmbedded({ dataDir: made });
    await makeLoginsCheap(first.service.context.database.db, first.demo);
    await first[Symbol.asyncDispose]();
    // Others may come first; what a rename has put there is whole.
    await rename(made, template).catch(() => remove(made));
  }
  return folderLike(template);
}

/** The database and the `DATA_DIR` of an instance on PostgreSQL that was started once: they have its demo. The first of a run starts it. */
async function startedTemplate(): Promise<{ dataDir: string; database: string }> {
  const dataDir = join(inject('runFolder'), 'started-on-postgres');
  const database = startedDatabase(inject('runFolder'));
  if (existsSync(dataDir)) return { dataDir, database };
  const empty = await realTemplate();
  await onlyOne(async () => {
    if (existsSync(dataDir)) return;
    const made = await mkdtemp(`${dataDir}-`);
    const { url } = await copyOfDatabase(empty, database);
    const { service } = await start(made, { DATA_DIR: made, DATABASE_URL: asService(url) });
    await ensureDemo(service.context);
    await service[Symbol.asyncDispose]();
    await rename(made, dataDir);
  });
  return { dataDir, database };
}

async function folderLike(template: string): Promise<string> {
  const dataDir = await mkdtemp(join(tmpdir(), 'portcullis-test-'));
  await cp(template, dataDir, { recursive: true, mode: constants.COPYFILE_FICLONE });
  return dataDir;
}

interface Started {
  service: Service;
  watch: SecretWatch;
  webhook: { username: string; password: string };
}

async function start(dataDir: string, variables: Record<string, string>, overrides: Overrides = {}): Promise<Started> {
  const { config, env } = readConfig({ PORT: '0', ADMIN_PORT: '0', LOG_LEVEL: 'silent', ...variables });
  const secrets = readSecrets(config, env);
  const watch = new SecretWatch(secrets);
  const log = watch.log(overrides.log ?? silentLog);
  try {
    const service = await startService({ config, secrets, log, overrides, variables });
    hashCheaply(service.context.passwords);
    const { username, password } = secrets.webhook;
    return { service, watch, webhook: { username, password: password.current } };
  } catch (error) {
    throw new Error(`the instance on ${dataDir} did not start`, { cause: error });
  }
}

function portcullis(
  { service, watch, webhook }: Started,
  demo: Demo,
  env: Record<string, string>,
  clean: () => Promise<void>,
): Portcullis {
  const url = service.baseUrl ?? '';
  watch.know(demo);
  const call: Portcullis['call'] = async (method, path, { token, headers = {}, json, body } = {}) => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(json === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      body: json === undefined ? bytesOf(body) : JSON.stringify(json),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, json: parsed(text) };
  };
  const tokenOf = async (grant: object): Promise<string> => {
    const answer = await call('POST', '/v2/oauth/token', { json: grant });
    if (answer.status !== 200) throw new Error(`no token: ${answer.status} ${answer.text}`);
    return answer.json.access_token;
  };
  return {
    service,
    url,
    dataDir: env.DATA_DIR ?? '',
    demo,
    webhook,
    env,
    call,
    clientToken: (client = demo.client) => tokenOf({ grant_type: 'client_credentials', ...client }),
    loginToken: () => tokenOf({ grant_type: 'password', ...demo.client, ...demo.supervisor }),
    [Symbol.asyncDispose]: async () => {
      await watch.lookThroughRecords(service);
      await stopped(service);
      await clean();
      watch.assertNone();
    },
  };
}

function parsed(text: string): Answer['json'] {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function bytesOf(body: string | Buffer | undefined): string | Uint8Array<ArrayBuffer> | null {
  return Buffer.isBuffer(body) ? new Uint8Array(body) : (body ?? null);
}

async function remove(dataDir: string): Promise<void> {
  await rm(dataDir, { recursive: true, force: true });
}

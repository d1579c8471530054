import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { withPostgres } from '../../test/support/services/pg-client.ts';
import { type ProvisionedServices, provision } from '../../test/support/services/provision.ts';
import type { Statement } from '../accounts/statements.ts';
import { productEnv, ROOT, type ServerAddresses } from './product.ts';
import { tell } from './report.ts';

const SEED = join(import.meta.dirname, 'seed.ts');

/** The two ways to run the product. */
export type Stores = 'embedded' | 'servers';

const TITLES: Record<Stores, string> = { embedded: 'embedded (PGlite)', servers: 'PostgreSQL, Redis, Kafka' };

/** A seeded instance that does not run: its folder, and its servers where it has some. */
export interface World extends AsyncDisposable {
  stores: Stores;
  dataDir: string;
  servers: ServerAddresses;
}

/** Those that `--stores` names, or both. */
export function storesNamed(names: readonly string[] | undefined): Stores[] {
  return (names ?? Object.keys(TITLES)).map((name) => {
    if (name === 'embedded' || name === 'servers') return name;
    throw new Error(`--stores is embedded or servers, not ${name}`);
  });
}

/** How a report names one of the two. */
export function titleOf(stores: Stores): string {
  return TITLES[stores];
}

/** Calls `use` on fresh stores of each kind in turn; servers that were started here are stopped at the end. */
export async function onEachStores(
  kinds: readonly Stores[],
  use: (world: World, title: string) => Promise<void>,
): Promise<void> {
  await withServices(kinds, async (open) => {
    for (const kind of kinds) {
      tell(`on ${TITLES[kind]} …`);
      await using world = await open(kind);
      await use(world, TITLES[kind]);
    }
  });
}

/** Calls `use` once, on fresh stores of each kind side by side. */
export async function onAllStores(
  kinds: readonly Stores[],
  use: (worlds: readonly World[]) => Promise<void>,
): Promise<void> {
  await withServices(kinds, async (open) => {
    await using worlds = new AsyncDisposableStack();
    const opened: World[] = [];
    for (const kind of kinds) opened.push(worlds.use(await open(kind)));
    await use(opened);
  });
}

/** Calls `use` with what opens fresh stores on the same servers, as often as it is called. */
export async function onServers(use: (open: () => Promise<World>) => Promise<void>): Promise<void> {
  await withServices(['servers'], (open) => use(() => open('servers')));
}

type OpenWorld = (kind: Stores) => Promise<World>;

async function withServices(kinds: readonly Stores[], use: (open: OpenWorld) => Promise<void>): Promise<void> {
  const services = kinds.includes('servers') ? await startServices() : undefined;
  try {
    await use((kind) => emptyWorld(kind === 'servers' ? services : undefined));
  } finally {
    await services?.stop();
  }
}

/**
 * PostgreSQL, Redis and Kafka: those that DATABASE_URL, REDIS_URL and KAFKA_BROKERS name, the others started here.
 * @throws where one cannot be had, with the reason.
 */
function startServices(): Promise<ProvisionedServices> {
  return provision({ ...process.env, CI: 'true' });
}

/** A folder that nothing is in; it goes when it is disposed of. */
export async function emptyFolder(): Promise<AsyncDisposable & { path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'portcullis-bench-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/** A folder and, on servers, a database and a prefix of its own; nothing is in them. */
async function emptyWorld(services: ProvisionedServices | undefined): Promise<World> {
  const folder = await emptyFolder();
  const { path: dataDir } = folder;
  const removeFolder = () => folder[Symbol.asyncDispose]();
  if (!services) return { stores: 'embedded', dataDir, servers: {}, [Symbol.asyncDispose]: removeFolder };
  const name = `bench_${randomBytes(6).toString('hex')}`;
  const { postgres: databaseUrl = '', redis = '', kafka = '' } = services.addresses;
  await withPostgres(databaseUrl, (client) => client.query(`create database ${name}`));
  const url = new URL(databaseUrl);
  url.pathname = `/${name}`;
  const servers = {
    DATABASE_URL: url.href,
    REDIS_URL: redis,
    KAFKA_BROKERS: kafka,
    TOPIC_PREFIX: `${name}-`,
  };
  return {
    stores: 'servers',
    dataDir,
    servers,
    [Symbol.asyncDispose]: async () => {
      await withPostgres(databaseUrl, (client) => client.query(`drop database if exists ${name} with (force)`));
      await removeFolder();
    },
  };
}

/**
 * Migrates and seeds the demo in a process of its own; gives the statements of a page of accounts. With `limits` the
 * demo's client has limits of rate and of the month that are checked at each call and never refuse.
 */
export async function seedWorld({ dataDir, servers }: World, limits?: 'limits'): Promise<Statement[]> {
  const path = join(dataDir, 'statements.json');
  // Seeding has no use for Kafka's topics; the product makes them at its start.
  const { DATABASE_URL = '' } = servers;
  const env = { ...productEnv({ dataDir, servers: { DATABASE_URL } }), PORT: '0', ADMIN_PORT: '0' };
  const args = [SEED, path, ...(limits ? [limits] : [])];
  const child = spawn(process.execPath, args, { cwd: ROOT, env, stdio: ['ignore', 'ignore', 'inherit'] });
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error(`seeding ended with ${code}`);
  return JSON.parse(readFileSync(path, 'utf8'));
}

/** The databases of those worlds that are on servers. */
export function databasesOf(worlds: readonly World[]): string[] {
  return worlds.flatMap(({ servers }) => servers.DATABASE_URL ?? []);
}

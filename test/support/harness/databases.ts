import { createHash, randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { constants, cp, mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { inject } from 'vitest';
import { type Database, openDatabase } from '../../../src/platform/database/open-database.ts';
import { migrate } from '../../../src/platform/database/schema-migrations.ts';
import { freshDatabase } from '../services/isolation.ts';
import { dropDatabase, type PostgresClient, withPostgres } from '../services/pg-client.ts';
import { serviceAddress } from '../services/real.ts';
import { asService, ensureServiceRole, migrateWith } from './database-roles.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const MIGRATIONS = join(ROOT, 'migrations');
const TEMPLATE_LOCK = 7_205_002;

export interface EmbeddedDatabase extends Database {
  /** The cluster's own folder: it can be opened again once this one is closed, until it is disposed of. */
  dataDir: string;
}

export interface RealDatabase extends Database {
  url: string;
}

/** A migrated, empty database in this process; disposing closes it and removes its files. */
export async function embeddedDatabase(): Promise<EmbeddedDatabase> {
  const dataDir = await embeddedClusterCopy();
  const database = await openDatabase({ dataDir });
  return {
    ...database,
    dataDir,
    [Symbol.asyncDispose]: async () => {
      await database[Symbol.asyncDispose]();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** The files of a migrated, empty cluster that nobody has opened; the caller removes them. */
export async function embeddedClusterCopy(): Promise<string> {
  const template = await embeddedTemplate();
  const dataDir = await mkdtemp(join(tmpdir(), 'portcullis-cluster-'));
  await cp(template, dataDir, { recursive: true, mode: constants.COPYFILE_FICLONE });
  return dataDir;
}

/** A migrated, empty database on the provisioned PostgreSQL; disposing closes and drops it. */
export async function realDatabase(): Promise<RealDatabase> {
  const copy = await copyOfDatabase(await realTemplate());
  const database = await openDatabase({ url: copy.url });
  return {
    ...database,
    url: copy.url,
    [Symbol.asyncDispose]: async () => {
      await database[Symbol.asyncDispose]();
      await copy.drop();
    },
  };
}

/** A migrated, empty database for what any database serves: on the provisioned PostgreSQL, or embedded where there is none. */
export async function scratchDatabase(): Promise<Database> {
  return inject('addresses').postgres === undefined ? embeddedDatabase() : realDatabase();
}

/** A copy of a database on the provisioned PostgreSQL to which nobody is connected: by its files, which takes half the CPU of a log of their pages. */
export async function copyOfDatabase(
  template: string,
  name = `t_${randomBytes(8).toString('hex')}`,
): Promise<{ url: string; drop(): Promise<void> }> {
  const server = serviceAddress('postgres');
  await withPostgres(server, (client) =>
    client.query(`create database ${name} template ${template} strategy file_copy`),
  );
  return { url: urlOf(name), drop: () => dropDatabase(server, name) };
}

/** Calls `make` while no other process of any run does. */
export async function onlyOne(make: (client: PostgresClient) => Promise<void>): Promise<void> {
  await withPostgres(serviceAddress('postgres'), async (client) => {
    await client.query(`select pg_advisory_lock(${TEMPLATE_LOCK})`);
    await make(client);
  });
}

/** Made by whoever comes first; a rename shows it to the others complete or not at all. */
async function embeddedTemplate(): Promise<string> {
  const template = join(tmpdir(), `portcullis-template-${schemaHash()}-${pgliteVersion()}`);
  if (existsSync(template)) return template;
  const made = await mkdtemp(`${template}-`);
  const database = await openDatabase({ dataDir: made });
  await migrate(database);
  await database[Symbol.asyncDispose]();
  try {
    await rename(made, template);
  } catch (error) {
    await rm(made, { recursive: true, force: true });
    if (!existsSync(template)) throw error;
  }
  return template;
}

/** A database of this schema on the server that only serves to be copied: nobody stays connected to it. */
export function realTemplate(): Promise<string> {
  madeTemplate ??= makeTemplate();
  return madeTemplate;
}

let madeTemplate: Promise<string> | undefined;

async function makeTemplate(): Promise<string> {
  const name = `portcullis_template_${schemaHash()}`;
  await onlyOne(async (client) => {
    const { rows } = await client.query(`select 1 from pg_database where datname = '${name}'`);
    if (rows.length > 0) return;
    await ensureServiceRole(client);
    await using fresh = await freshDatabase();
    await migrateWith({ owner: fresh.url, service: asService(fresh.url) });
    await client.query(`create database ${name} template ${new URL(fresh.url).pathname.slice(1)}`);
  });
  return name;
}

function urlOf(name: string): string {
  const url = new URL(serviceAddress('postgres'));
  url.pathname = `/${name}`;
  return url.href;
}

function schemaHash(): string {
  const hash = createHash('sha256');
  for (const file of readdirSync(MIGRATIONS).sort()) hash.update(file).update(readFileSync(join(MIGRATIONS, file)));
  for (const file of ['app/database-roles.ts', 'lib/identifier-key.ts']) {
    hash.update(readFileSync(join(ROOT, 'src', file)));
  }
  return hash.digest('hex').slice(0, 16);
}

function pgliteVersion(): string {
  const text = readFileSync(join(ROOT, 'node_modules/@electric-sql/pglite/package.json'), 'utf8');
  const { version } = JSON.parse(text) as { version: string };
  return version;
}

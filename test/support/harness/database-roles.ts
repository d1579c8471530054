import { createHash, randomBytes } from 'node:crypto';
import { migrateByOwner } from '../../../src/app/database-roles.ts';
import type { UnscopedDatabase } from '../../../src/platform/database/database.ts';
import { openDatabase } from '../../../src/platform/database/open-database.ts';
import { blocksOf } from '../docs/markdown.ts';
import type { Portcullis } from '../harness.ts';
import { dropDatabase, type PostgresClient, withPostgres } from '../services/pg-client.ts';
import { serviceAddress } from '../services/real.ts';

const PAGE = 'docs/operations/database-roles.md';
const SERVICE = 'portcullis_test_service';

/** The address of a database by the role of services that `ensureServiceRole` makes. */
export function asService(url: string): string {
  const password = createHash('sha256').update(serviceAddress('postgres')).digest('hex');
  return withUser(url, SERVICE, password);
}

/** Makes the role by which the services of the tests connect, unless the server has it. */
export async function ensureServiceRole(client: PostgresClient): Promise<void> {
  const { rows } = await client.query(`select 1 from pg_roles where rolname = '${SERVICE}'`);
  if (rows.length > 0) return;
  const { password } = new URL(asService(serviceAddress('postgres')));
  await client.query(`create role ${SERVICE} login password '${password}'`);
}

/** Works on an instance's database as the owner of its tables, for what the role of services may not do. */
export async function asOwner<Result>(
  { service, env }: Portcullis,
  work: (door: UnscopedDatabase) => Promise<Result>,
): Promise<Result> {
  const { database } = service.context;
  if (database.isEmbedded) return work(database.db.unscoped('test'));
  const { username, password } = new URL(serviceAddress('postgres'));
  await using owner = await openDatabase({ url: withUser(env.DATABASE_URL ?? '', username, password) });
  return await work(owner.db.unscoped('test'));
}

/** Renames a table of an instance: what asks for it fails. */
export function renameTable(p: Portcullis, from: string, to: string): Promise<unknown> {
  return asOwner(p, (door) => door.raw((sql) => sql`alter table ${sql.id(from)} rename to ${sql.id(to)}`));
}

/** Migrates as `migrate` of a release does, with two addresses. */
export async function migrateWith(urls: TwoUrls, auditRetentionDays = 90): Promise<{ name: string } | undefined> {
  await using database = await openDatabase({ url: urls.service });
  const config = { databaseUrl: urls.service, migrateDatabaseUrl: urls.owner, auditRetentionDays };
  const { service } = await migrateByOwner({ config, database });
  return service;
}

interface TwoUrls {
  /** `MIGRATE_DATABASE_URL`. */
  owner: string;
  /** `DATABASE_URL`. */
  service: string;
}

/** A database on the provisioned PostgreSQL, and the two roles for it. */
export interface TwoRoles extends TwoUrls, AsyncDisposable {
  /** The address of the database by the user of the server. */
  server: string;
  /** The names of the roles. */
  names: { owner: string; service: string };
}

/** Makes an empty database and its roles by the statements of the page, with names of its own. */
export async function twoRoles(): Promise<TwoRoles> {
  const server = serviceAddress('postgres');
  const own = `t_${randomBytes(8).toString('hex')}`;
  const [make = [], close = []] = blocksOf(PAGE)
    .filter(({ lang }) => lang === 'sql')
    .map(({ text }) => statementsOf(text.replaceAll('portcullis', own)));
  await withPostgres(server, async (client) => {
    for (const statement of make) await client.query(statement);
  });
  const passwords = make.flatMap((statement) => /password '([^']+)'/.exec(statement)?.[1] ?? []);
  const at = new URL(server);
  at.pathname = `/${own}`;
  await withPostgres(at.href, async (client) => {
    for (const statement of close) await client.query(statement);
  });
  const names = { owner: `${own}_owner`, service: own };
  return {
    names,
    server: at.href,
    owner: withUser(at.href, names.owner, passwords[0] ?? ''),
    service: withUser(at.href, names.service, passwords[1] ?? ''),
    [Symbol.asyncDispose]: async () => {
      await dropDatabase(server, own);
      await withPostgres(server, async (client) => {
        for (const name of Object.values(names)) await client.query(`drop role ${name}`);
      });
    },
  };
}

function statementsOf(text: string): string[] {
  return text
    .split(/;\s*$/m)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '');
}

function withUser(address: string, username: string, password: string): string {
  return Object.assign(new URL(address), { username, password }).href;
}

import { readdirSync } from 'node:fs';
import { basename } from 'node:path';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { type Database, MIGRATIONS } from './database.ts';

const LOCK = 4_273_001;

/** The migrations that the database has not had yet, oldest first. */
export async function pendingMigrations({ db }: Database): Promise<string[]> {
  const names = readdirSync(MIGRATIONS)
    .filter((file) => /^migration-.*\.ts$/.test(file))
    .map((file) => basename(file, '.ts'))
    .sort();
  const done = new Set(await executedMigrations(db));
  return names.filter((name) => !done.has(name));
}

/**
 * Brings the schema up to date and gives the names of what ran. Of several processes at once one works, under an
 * advisory lock; the embedded database has one process and one connection.
 */
export async function migrate(database: Database): Promise<string[]> {
  if (database.isEmbedded) return runMigrations(database);
  return database.db.transaction(async () => {
    await database.db.unscoped('one process migrates').raw((sql) => sql`select pg_advisory_xact_lock(${LOCK})`);
    return runMigrations(database);
  });
}

async function runMigrations(database: Database): Promise<string[]> {
  if ((await pendingMigrations(database)).length === 0) return [];
  const { Migrator } = await import('@mikro-orm/migrations');
  Migrator.register(database.orm);
  const done = await new Migrator(database.orm.em as SqlEntityManager).up();
  return done.map((migration) => migration.name);
}

async function executedMigrations(db: Database['db']): Promise<string[]> {
  const door = db.unscoped('the schema is of no node');
  const [table] = await door.raw(
    (sql) => sql<{ exists: boolean }>`select to_regclass('mikro_orm_migrations') is not null as exists`,
  );
  if (!table?.exists) return [];
  const rows = await door.raw((sql) => sql<{ name: string }>`select name from mikro_orm_migrations`);
  return rows.map((row) => row.name);
}

import { readdirSync } from 'node:fs';
import { basename } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { type Database, SCHEMA_MIGRATIONS } from './database.ts';
import { DEADLOCK, sqlState } from './sql-state.ts';

/** Not the number of 0.1.0: a statement that waits for a lock holds up the concurrent build of an index for ever. */
const LOCK = 4_273_007;
const RETRY_MS = 200;
const MOST_ATTEMPTS = 10;

/** Returns the names of the schema migrations that have not run in the database yet, oldest first. */
export async function pendingSchemaMigrations({ db }: Database): Promise<string[]> {
  const names = readdirSync(SCHEMA_MIGRATIONS)
    .filter((file) => /^migration-.*\.ts$/.test(file))
    .map((file) => basename(file, '.ts'))
    .sort();
  const executed = new Set(await executedMigrations(db));
  return names.filter((name) => !executed.has(name));
}

/** Called as each schema migration begins, when `done` of the `total` pending ones have completed. */
export type OnSchemaMigration = (step: { name: string; done: number; total: number }) => void;

/**
 * Runs the pending schema migrations and returns their names. An advisory lock makes other processes wait meanwhile, without
 * a statement that waits; the embedded database has one process and one connection, and needs none.
 */
export async function migrate(database: Database, onMigration: OnSchemaMigration = () => undefined): Promise<string[]> {
  if (database.isEmbedded) return runMigrations(database, onMigration);
  const unscoped = database.db.unscoped('advisory lock, no table');
  for (;;) {
    const executed = await database.db.transaction(async () => {
      // Without a parameter: what is bound keeps its snapshot in the transaction of an owner, for which the build waits.
      const [lock] = await unscoped.raw(
        (sql) => sql<{ taken: boolean }>`select pg_try_advisory_xact_lock(${sql.raw(String(LOCK))}) as taken`,
      );
      return lock?.taken ? runMigrations(database, onMigration) : undefined;
    });
    if (executed) return executed;
    await setTimeout(RETRY_MS);
  }
}

async function runMigrations(database: Database, onMigration: OnSchemaMigration): Promise<string[]> {
  const pending = await pendingSchemaMigrations(database);
  if (pending.length === 0) return [];
  const { Migrator } = await import('@mikro-orm/migrations');
  let startedCount = 0;
  const { em } = await database.openOrm();
  const migrator = new Migrator(em).on('migrating', ({ name }) => {
    onMigration({ name, done: startedCount, total: pending.length });
    startedCount += 1;
  });
  for (let attempt = 1; ; attempt += 1) {
    try {
      await migrator.up();
      return pending;
    } catch (error) {
      // A running service has locked in another order; earlier schema migrations stay.
      if (sqlState(error) !== DEADLOCK || attempt === MOST_ATTEMPTS) throw error;
    }
  }
}

async function executedMigrations(db: Database['db']): Promise<string[]> {
  const unscoped = db.unscoped('the schema is global');
  const [table] = await unscoped.raw(
    (sql) => sql<{ exists: boolean }>`select to_regclass('mikro_orm_migrations') is not null as exists`,
  );
  if (!table?.exists) return [];
  const rows = await unscoped.raw((sql) => sql<{ name: string }>`select name from mikro_orm_migrations`);
  return rows.map((row) => row.name);
}

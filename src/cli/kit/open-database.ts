import { existsSync } from 'node:fs';
import { openStore } from '../../app/stores.ts';
import type { Config } from '../../platform/config/config.ts';
import { embeddedClusterDir } from '../../platform/config/data-dir.ts';
import type { Database } from '../../platform/database/database.ts';
import { migrate, pendingSchemaMigrations } from '../../platform/database/schema-migrations.ts';
import { lockDataDir } from '../../platform/embedded/data-dir-lock.ts';
import { CommandError } from './command.ts';

interface Opening {
  /** What to do while a server has the embedded database. */
  advice: string;
  /** Whether an embedded database is made where there is none: of use to a command that needs none of its rows. */
  makes?: boolean;
}

/**
 * Opens the database of a command until `stack` is disposed of. The embedded one is taken for this process alone.
 * @throws StartError while a server runs on `DATA_DIR`, or where that is not whole; CommandError where there is no database.
 */
export async function openForCommand(
  config: Config,
  { advice, makes = false }: Opening,
  stack: AsyncDisposableStack,
): Promise<Database> {
  const { databaseUrl, dataDir } = config;
  if (databaseUrl === undefined) {
    if (!makes && !existsSync(embeddedClusterDir(dataDir)))
      throw new CommandError(
        `there is no database in DATA_DIR ${dataDir}: portcullis start makes one, or name that of a server by DATABASE_URL`,
      );
    stack.use(lockDataDir(dataDir, advice));
    const { prepareDataDir } = await import('../../app/demo/demo-data-dir.ts');
    await prepareDataDir(dataDir);
  }
  return openStore(config, stack);
}

/**
 * As `openForCommand`, with the schema of this release: an embedded database is migrated.
 * @throws CommandError where the schema of a server is older.
 */
export async function openMigrated(config: Config, opening: Opening, stack: AsyncDisposableStack): Promise<Database> {
  const database = await openForCommand(config, opening, stack);
  if (database.isEmbedded) await migrate(database);
  else if ((await pendingSchemaMigrations(database)).length > 0) {
    throw new CommandError('the schema is older than this release: run portcullis migrate first');
  }
  return database;
}

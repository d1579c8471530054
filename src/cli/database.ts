import type { Config } from '../config/config.ts';
import type { Database } from '../database.ts';
import { lockDataDir } from '../embedded/data-dir-lock.ts';
import { migrate, pendingMigrations } from '../migrate.ts';
import { openStore } from '../stores.ts';
import { CommandError } from './command.ts';

/**
 * Opens the database of a command until `stack` is disposed of. The embedded one is taken for this process alone:
 * `advice` says what to do while a server has it.
 * @throws StartError while a server runs on `DATA_DIR`.
 */
export async function openForCommand(config: Config, advice: string, stack: AsyncDisposableStack): Promise<Database> {
  if (config.databaseUrl === undefined) {
    stack.use(lockDataDir(config.dataDir, advice));
    const { ensureCluster } = await import('../embedded/cluster.ts');
    await ensureCluster(config.dataDir);
  }
  return openStore(config, stack);
}

/**
 * As `openForCommand`, with the schema of this release: an embedded database is migrated.
 * @throws CommandError where the schema of a server is older.
 */
export async function openMigrated(config: Config, advice: string, stack: AsyncDisposableStack): Promise<Database> {
  const database = await openForCommand(config, advice, stack);
  if (database.isEmbedded) await migrate(database);
  else if ((await pendingMigrations(database)).length > 0) {
    throw new CommandError('the schema is older than this release: run portcullis migrate first');
  }
  return database;
}

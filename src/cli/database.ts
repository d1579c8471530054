import type { Config } from '../config/config.ts';
import type { Database } from '../database.ts';
import { lockDataDir } from '../embedded/data-dir-lock.ts';
import { openStore } from '../stores.ts';

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

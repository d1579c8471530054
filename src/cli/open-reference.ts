import { readConfig } from '../config/config.ts';
import { Reference } from '../reference/reference.service.ts';
import { openMigrated } from './database.ts';

const ADVICE = 'stop it first, or give this one the DATABASE_URL of a PostgreSQL that servers share';

/**
 * Reference data for a command, until `stack` is disposed of.
 * @throws StartError while an embedded server runs on `DATA_DIR`, CommandError where the schema is older than the program.
 */
export async function openReference(
  env: NodeJS.ProcessEnv,
  stack: AsyncDisposableStack,
): Promise<{ reference: Reference; dropped: string[] }> {
  const { config } = readConfig(env);
  const database = await openMigrated(config, ADVICE, stack);
  const dropped: string[] = [];
  const reference = new Reference({
    db: database.db,
    nowMs: Date.now,
    dropped: (kind, id, reason) =>
      void dropped.push(`reference.${kind} ${id}, which had waited for its parent: ${reason}`),
  });
  return { reference, dropped };
}

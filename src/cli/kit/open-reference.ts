import { Reference } from '../../domain/reference/reference.service.ts';
import { readConfig } from '../../platform/config/config.ts';
import type { Db } from '../../platform/database/database.ts';
import { openMigrated } from './open-database.ts';

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
  const database = await openMigrated(config, { advice: ADVICE, makes: true }, stack);
  const dropped: string[] = [];
  return { reference: referenceFor(database.db, dropped), dropped };
}

/** Reference data on a database. Rows that had waited for a parent and cannot be applied are named in `dropped`. */
export function referenceFor(db: Db, dropped: string[]): Reference {
  return new Reference({
    db,
    nowMs: Date.now,
    dropped: (kind, id, reason) =>
      void dropped.push(`reference.${kind} ${id}, which had waited for its parent: ${reason}`),
  });
}

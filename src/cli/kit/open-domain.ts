import { setTimeout } from 'node:timers/promises';
import { AUDIT_DELAY_MS } from '../../audit/audit-writer.ts';
import { buildStored } from '../../domain/domain.ts';
import { type Log, silentLog } from '../../lib/log.ts';
import { readConfig } from '../../platform/config/config.ts';
import type { CommandInput } from './command.ts';
import { type Opening, openMigrated } from './open-database.ts';

/** How a command is opened that writes reference data. */
export const REFERENCE_OPENING: Opening = {
  advice: 'stop it first, or give this one the DATABASE_URL of a PostgreSQL that servers share',
  makes: true,
};

/** What is told of a command's work while it lasts. */
interface Telling {
  log?: Log;
  /** Told after each batch how many rows of its file have an outcome. */
  onBatch?(rows: number): void;
}

/**
 * Opens the database, and what of the domain stands on it alone, until the command ends. Rows of reference data that had
 * waited for a parent and cannot be applied are named in `dropped`.
 * @throws StartError while an embedded server runs on `DATA_DIR`, CommandError where the schema is older than the program.
 */
export async function openDomain(
  { env, stack }: Pick<CommandInput, 'env' | 'stack'>,
  opening: Opening,
  { log = silentLog, onBatch }: Telling = {},
) {
  const { config } = readConfig(env);
  const database = await openMigrated(config, opening, stack);
  const dropped: string[] = [];
  const domain = buildStored({
    db: database.db,
    log,
    nowMs: Date.now,
    registersByMutation: true,
    // Nobody is subscribed in this process, and it relays no events: servers poll for both.
    wake: () => undefined,
    notify: () => undefined,
    // Running servers have spools of their own.
    auditSettled: () => setTimeout(AUDIT_DELAY_MS),
    dropped: (kind, id, reason) =>
      void dropped.push(`reference.${kind} ${id}, which had waited for its parent: ${reason}`),
    onBatch,
  });
  return { ...domain, config, database, dropped };
}

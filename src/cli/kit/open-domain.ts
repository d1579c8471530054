import { setTimeout } from 'node:timers/promises';
import { type Log, silentLog } from '../../lib/log.ts';
import { readConfig } from '../../platform/config/config.ts';
import { readSecrets } from '../../platform/config/secrets.ts';
import type { CommandInput } from './command.ts';
import { type Opening, openMigrated } from './open-database.ts';

/** How commands that write reference data open the database. */
export const REFERENCE_OPENING: Opening = {
  advice: () => 'stop it first, repeat this, and start it again; on a PostgreSQL that servers share nobody has to stop',
  makes: true,
};

/** Receives logs and progress while a command works. */
interface Telling {
  log?: Log;
  /** Called after each row batch with the number of rows in it that have an outcome. */
  onBatch?(rows: number): void;
}

/**
 * Opens the database and the domain services that need no other store, until the command ends. `dropped` collects the
 * rows of reference data that waited for a parent but cannot be applied.
 * @throws StartError while an embedded run uses `DATA_DIR`; CommandError when the schema is older than this release.
 */
export async function openDomain(
  { env, stack }: Pick<CommandInput, 'env' | 'stack'>,
  opening: Opening,
  { log = silentLog, onBatch }: Telling = {},
) {
  const { config, env: variables } = readConfig(env);
  const [{ openBus, sealSink }, { AUDIT_DELAY_MS }, { AuditErasure }, { AuditSeals }, { buildStored }] =
    await Promise.all([
      import('../../app/stores.ts'),
      import('../../audit/audit-writer.ts'),
      import('../../audit/erasure.ts'),
      import('../../audit/seals.ts'),
      import('../../domain/domain.ts'),
    ]);
  const database = await openMigrated(config, opening, stack);
  const dropped: string[] = [];
  const seals = new AuditSeals({
    db: database.db,
    nowMs: Date.now,
    sink: sealSink(config, () => openBus(config, database.db, log, stack)),
    // Read late, so that commands that erase nothing generate no secrets.
    key: () => readSecrets(config, variables).auditKeys[0],
    onError: () => undefined,
  });
  const domain = buildStored({
    db: database.db,
    auditErasure: new AuditErasure(database.db, seals),
    log,
    nowMs: Date.now,
    registersByMutation: true,
    // This process has no subscribers and relays no events; running processes poll for both.
    wake: () => undefined,
    notify: () => undefined,
    // Waits until running processes have written the audit records that are in their spools.
    auditSettled: () => setTimeout(AUDIT_DELAY_MS),
    dropped: (kind, id, reason) =>
      void dropped.push(`reference.${kind} ${id}, which had waited for its parent: ${reason}`),
    onBatch,
  });
  return { ...domain, config, database, dropped };
}

import { auditInsert } from './audit/audit-store.ts';
import { AuditWriter } from './audit/audit-writer.ts';
import { AuditSpool } from './audit/spool.ts';
import { SpoolTurn } from './audit/spool-turn.ts';
import type { Config } from './config/config.ts';
import type { Database } from './database.ts';
import { AuditLog } from './gateway/audit.ts';
import type { Log } from './lib/log.ts';

/** What is told of each request and operation that has ended. */
export type AuditTrail = Pick<AuditLog, 'record' | 'recordOperation' | 'recordUnparsed'>;

interface AuditParts {
  config: Pick<Config, 'auditSpoolDir'>;
  database: Database;
  log: Log;
  /** What is told in the place of the spool and the log. */
  trail: AuditTrail | undefined;
  /** Takes what is to be stopped. */
  stack: AsyncDisposableStack;
}

const LAST_DRAIN_MS = 5_000;

/** The way of an audit record: by the turn into the spool, and from there into the database once the writer is started. */
export function openAudit({ config, database, log, trail, stack }: AuditParts) {
  const spool = AuditSpool.open({ dir: config.auditSpoolDir });
  const auditWriter = new AuditWriter({
    spool,
    insert: auditInsert(database.db, log),
    onError: (error) => log.error({ err: error }, 'audit records stay in the spool: they cannot be written'),
  });
  const turn = new SpoolTurn({
    spool,
    onLost: (error, line) => log.error({ err: error, bytes: line.length }, 'an audit record could not be kept'),
    onFault: (error) => log.error({ err: error }, 'an answer could not be sent'),
  });
  stack.defer(async () => {
    turn.commit();
    await auditWriter.stop(LAST_DRAIN_MS);
    await spool.close();
  });
  return { spool, auditWriter, audit: trail ?? new AuditLog(turn, log) };
}

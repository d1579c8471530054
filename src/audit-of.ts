import { Counter } from 'prom-client';
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
  const lost = new Counter({
    name: 'portcullis_audit_records_lost_total',
    help: 'Audit records that are lost: the spool could not keep them, or the database takes them in no case.',
    labelNames: ['reason'],
    registers: [],
  });
  for (const reason of ['spool', 'database']) lost.inc({ reason }, 0);
  const onLost = (reason: string, message: string) => (error: unknown, line: string) => {
    lost.inc({ reason });
    log.error({ err: error, bytes: line.length }, message);
  };
  const auditWriter = new AuditWriter({
    spool,
    insert: auditInsert(database.db, onLost('database', 'an audit record was refused by the database')),
    onError: (error) => log.error({ err: error }, 'audit records stay in the spool: they cannot be written'),
  });
  const turn = new SpoolTurn({
    spool,
    onLost: onLost('spool', 'an audit record could not be kept'),
    onFault: (error) => log.error({ err: error }, 'an answer could not be sent'),
  });
  stack.defer(async () => {
    turn.commit();
    await auditWriter.stop(LAST_DRAIN_MS);
    await spool.close();
  });
  return { spool, auditWriter, auditLost: lost, audit: trail ?? new AuditLog(turn, log) };
}

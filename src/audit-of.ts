import { Counter } from 'prom-client';
import { AuditStore } from './audit/audit-store.ts';
import { AuditWriter } from './audit/audit-writer.ts';
import { RefusedRecords } from './audit/refused-records.ts';
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
  nowMs(): number;
  /** What is told in the place of the spool and the log. */
  trail: AuditTrail | undefined;
  /** Takes what is to be stopped. */
  stack: AsyncDisposableStack;
}

const LAST_DRAIN_MS = 5_000;

/** The way of an audit record: by the turn into the spool, and from there into the database once the writer is started. */
export function openAudit({ config, database, log, nowMs, trail, stack }: AuditParts) {
  const spool = AuditSpool.open({ dir: config.auditSpoolDir });
  const lost = new Counter({
    name: 'portcullis_audit_records_lost_total',
    help: 'Audit records that the database has not: the spool could not keep them, it takes them in no case, or they are in refused.ndjson.',
    labelNames: ['reason'],
    registers: [],
  });
  for (const reason of ['spool', 'database', 'refused']) lost.inc({ reason }, 0);
  const onLost = (reason: string, message: string) => (error: unknown, line: string) => {
    lost.inc({ reason });
    log.error({ err: error, bytes: line.length }, message);
  };
  const store = new AuditStore(database.db);
  const onError = (error: unknown) =>
    log.error({ err: error }, 'audit records stay in the spool: they cannot be written');
  const refused = new RefusedRecords({
    dir: config.auditSpoolDir,
    nowMs,
    insert: (line) => store.insertAll([line]),
    takesOthers: () => store.takesOthers(),
    onGivenUp: onLost('refused', 'an audit record was refused for ten minutes: it is in refused.ndjson'),
    onError,
  });
  refused.start();
  const onBadValue = onLost('database', 'an audit record was refused by the database');
  const auditWriter = new AuditWriter({
    spool,
    insert: (lines) => store.insert(lines, onBadValue, (_error, line) => refused.add(line)),
    onError,
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
    refused.close();
  });
  return { spool, auditWriter, auditRefused: refused, auditLost: lost, audit: trail ?? new AuditLog(turn, log) };
}

import { AuditChain } from '../audit/audit-chain.ts';
import { jsonOf } from '../audit/audit-record.ts';
import { AuditStore, AuditWriter } from '../audit/audit-writer.ts';
import { SecretNames } from '../audit/masked-names.ts';
import { RefusedRecords } from '../audit/refused-records.ts';
import { AuditSeals, ChainKeeper } from '../audit/seals.ts';
import { AuditSpool } from '../audit/spool.ts';
import type { EventBus } from '../events/bus/event-bus.ts';
import { AuditLog } from '../gateway/exchange/audit.ts';
import type { Log } from '../lib/log.ts';
import { counterBy } from '../lib/meters.ts';
import { withTimeout } from '../lib/with-timeout.ts';
import type { Config } from '../platform/config/config.ts';
import type { Secrets } from '../platform/config/secrets.ts';
import type { Database } from '../platform/database/database.ts';
import { sealSink } from './stores.ts';

/** The methods of the audit log that are called when a request or operation has ended. */
export type AuditTrail = Pick<AuditLog, 'record' | 'recordOperation' | 'recordUnparsed'>;

const LAST_DRAIN_MS = 5_000;

/**
 * Opens the audit spool and makes its writer: records go into the spool at the end of each tick, and from there into
 * the database once `auditWriter` is started.
 */
export function openAudit({
  config,
  secrets,
  database,
  bus,
  log,
  nowMs,
  trail,
  stack,
}: {
  config: Pick<Config, 'auditSpoolDir' | 'auditSync' | 'auditCheckpoints' | 'auditMaskedNames'>;
  secrets: Pick<Secrets, 'auditKeys'>;
  database: Database;
  bus: EventBus;
  log: Log;
  nowMs(): number;
  /** The audit trail to use instead of the spool and the log; undefined means those two. */
  trail: AuditTrail | undefined;
  /** Receives the disposables to stop. */
  stack: AsyncDisposableStack;
}) {
  const { db } = database;
  const seals = new AuditSeals({
    db,
    nowMs,
    key: () => secrets.auditKeys[0],
    sink: sealSink(config, () => bus),
    onError: (error) => log.error({ err: error }, 'could not copy an audit checkpoint outside the database'),
  });
  const lostRecords = counterBy('reason', ['spool', 'sync', 'database', 'refused'], {
    name: 'portcullis_audit_records_lost_total',
    help: 'Audit records that were not stored: the spool or its sync failed, or the database rejected them (see refused.ndjson).',
  });
  const onLost = (reason: string, message: string) => (error: unknown, line: { length: number }) => {
    lostRecords.inc({ reason });
    log.error({ err: error, bytes: line.length }, message);
  };
  const { auditSpoolDir: dir, auditSync: isSynced } = config;
  const spool = AuditSpool.open({ dir, isSynced, onDrained: (owner) => keeper.close(owner) });
  const chain = new AuditChain(spool.owner, spool, {
    ...(isSynced && { sync: () => spool.sync() }),
    onUnsynced: onLost('sync', 'could not sync the audit spool; a crash of the machine may lose an audit record'),
    onLost: onLost('spool', 'could not store an audit record'),
    onFault: (error) => log.error({ err: error }, 'could not send a response'),
  });
  const keeper = new ChainKeeper({
    db,
    seals,
    own: chain,
    onError: (error) => log.error({ err: error }, 'no audit checkpoint within the last minute'),
  });
  keeper.start();
  const store = new AuditStore(db);
  const onError = (error: unknown) =>
    log.error({ err: error }, 'could not write audit records to the database; keeping them in the spool');
  const refusedRecords = new RefusedRecords({
    dir,
    nowMs,
    insert: (line) => store.insertAll([Buffer.from(line)]),
    canInsertProbe: () => store.canInsertProbe(),
    onGivenUp: onLost('refused', 'database rejected an audit record for ten minutes; moved it to refused.ndjson'),
    onError,
  });
  refusedRecords.start();
  const onBadValue = onLost('database', 'database rejected an audit record');
  const auditWriter = new AuditWriter({
    spool,
    insert: (lines) =>
      keeper.write(lines, (onGap) =>
        store.insert(lines, onBadValue, (_error, line) => refusedRecords.add(jsonOf(line)), onGap),
      ),
    onError,
  });
  stack.defer(async () => {
    chain.commit();
    keeper.stop();
    let isSettled = await auditWriter.stop(LAST_DRAIN_MS);
    // A start that failed has recorded nothing; its database may be unusable.
    const hasRecorded = chain.head.index >= 0;
    const closing =
      isSettled && hasRecorded ? withTimeout(keeper.close(spool.owner), LAST_DRAIN_MS) : Promise.resolve();
    await closing.catch((error: unknown) => {
      isSettled = false;
      onError(error);
    });
    spool.close(isSettled);
    refusedRecords.close();
  });
  const recorder = new AuditLog(chain, log, new SecretNames({ mask: config.auditMaskedNames }));
  return {
    spool,
    auditWriter,
    auditSeals: seals,
    auditRefused: refusedRecords,
    auditLost: lostRecords,
    auditUnrecorded: recorder.unrecorded,
    audit: trail ?? recorder,
  };
}

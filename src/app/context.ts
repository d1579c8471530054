import { createHmac } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { Passwords } from '../access/credentials/passwords.ts';
import { sessionMirror } from '../access/revocation/session-mirror.ts';
import { operationDurations } from '../api/graphql/execution/operation-durations.ts';
import { TOOL_OUTCOMES } from '../api/mcp/kit/tool.ts';
import { AuditChain, jsonOf } from '../audit/audit-record.ts';
import { AUDIT_DELAY_MS, AuditStore, AuditWriter } from '../audit/audit-writer.ts';
import { AuditErasure } from '../audit/erasure.ts';
import { SecretNames } from '../audit/masked-names.ts';
import { RefusedRecords } from '../audit/refused-records.ts';
import { AuditSeals, ChainKeeper } from '../audit/seals.ts';
import { AuditSpool } from '../audit/spool.ts';
import type { EventBus } from '../events/bus/event-bus.ts';
import { ObservedBus } from '../events/bus/observed-bus.ts';
import { databaseEventLog } from '../events/streams/event-log.ts';
import { EventStreams, type EventStreamsOptions } from '../events/streams/event-streams.ts';
import { AttentionFinder } from '../features/attention/attention.service.ts';
import { downloadAuditExport } from '../features/audit-records/audit-exports.rest.ts';
import { AuditExportPages, AuditExports, AuditPages } from '../features/audit-records/audit-records.service.ts';
import { RpcProvider } from '../features/gas-fee/rpc-provider.service.ts';
import { CONSOLE_SESSION } from '../features/oauth/console-session.rest.ts';
import { issueToken } from '../features/oauth/oauth.rest.ts';
import { Search } from '../features/search/search.service.ts';
import { RejectedWebhooks } from '../features/webhook/webhook.rest.ts';
import { ConnectionMetrics } from '../gateway/connections.ts';
import { AuditLog } from '../gateway/exchange/audit.ts';
import { RequestMetrics } from '../gateway/exchange/request-metrics.ts';
import { PageCursors } from '../lib/keyset.ts';
import type { Log } from '../lib/log.ts';
import { counterBy } from '../lib/meters.ts';
import { every } from '../lib/shared-ticks.ts';
import { withTimeout } from '../lib/with-timeout.ts';
import type { Config } from '../platform/config/config.ts';
import type { Secrets } from '../platform/config/secrets.ts';
import type { Database } from '../platform/database/open-database.ts';
import { Health, VERSION } from '../platform/health.ts';
import { MemoryAccounts } from '../platform/held-memory.ts';
import { openTracing } from '../platform/telemetry/open-tracing.ts';
import { buildAccess } from './access.ts';
import { buildFeatures } from './features.ts';
import { openBus, openCache, openStore, openWakeUps, sealSink } from './stores.ts';

/** Replacements for dependencies, for use in tests. */
export interface Overrides {
  log?: Log;
  nowMs?: () => number;
  /**
   * How far the clock of this process is ahead of other processes' clocks, in milliseconds; ignored if `nowMs` is
   * given.
   */
  skewMs?: number;
  bus?: (bus: EventBus) => EventBus;
  /** Receives the audit records, instead of the spool and the log. */
  audit?: AuditTrail;
  /** Returns the options for the event streams, given the original ones. */
  streams?: (options: EventStreamsOptions) => EventStreamsOptions;
}

/** The dependencies of a running process, each constructed once, from which functions take those that they need. */
export type Context = Awaited<ReturnType<typeof createContext>>;

declare module '../api/shared/services.ts' {
  interface FeatureServices
    extends ReturnType<typeof buildFeatures>,
      Pick<
        Context,
        | ('attention' | 'auditExportPages' | 'auditExports' | 'auditPages' | 'search')
        | ('clientAdministration' | 'clientPages' | 'directory' | 'locks' | 'passwordCheck')
        | ('supervisorAdministration' | 'supervisorPages' | 'supervisors')
      > {}
}

/**
 * Constructs the dependencies of a process. This composition root is the only place that constructs the database, the
 * cache, the bus and what builds on them.
 */
export async function createContext({
  config,
  secrets,
  log: baseLog,
  overrides,
  stack,
}: {
  config: Config;
  secrets: Secrets;
  log: Log;
  overrides: Overrides;
  /** Receives the disposables to stop, in the order in which they were started. */
  stack: AsyncDisposableStack;
}) {
  const tracing = await openTracing(config.tracing, { log: baseLog, version: VERSION }, stack);
  const { log } = tracing;
  const { skewMs = 0 } = overrides;
  const nowMs = overrides.nowMs ?? (skewMs === 0 ? Date.now : () => Date.now() + skewMs);
  const [database, cache, wakeUps] = await Promise.all([
    openStore(config, stack),
    openCache(config, log, stack),
    openWakeUps(config, log, stack),
  ]);
  const { db, isEmbedded } = database;
  const opened = await openBus(config, db, log, stack);
  const bus = new ObservedBus({ bus: overrides.bus?.(opened) ?? opened, tracer: tracing.tracer, log });
  const telemetry = {
    tracer: tracing.tracer,
    requests: new RequestMetrics(),
    connections: new ConnectionMetrics(),
    operations: operationDurations(),
    toolOutcomes: counterBy('outcome', TOOL_OUTCOMES, {
      name: 'portcullis_tool_calls_total',
      help: 'MCP tool calls, by outcome: ok, error (reported to the agent), failed (internal error).',
    }),
    bus,
    exported: tracing.exported,
  };
  const audit = openAudit({ config, secrets, database, bus, log, nowMs, trail: overrides.audit, stack });
  const publicPath = URL.parse(config.publicUrl ?? '')?.pathname.replace(/\/$/, '') ?? '';
  const publicUrl = { value: config.publicUrl ?? '', path: publicPath };
  const health = new Health(
    {
      // On servers the poll of revocations reads the clock too: while it succeeds where writes do, nothing else has to be asked.
      database: async () =>
        isEmbedded || access.changes.ageMs > HEALTHY_AGE_MS || access.changes.isReadOnly
          ? access.clock.note(await database.checkHealth())
          : undefined,
      cache: () => cache.checkHealth(),
      bus: () => bus.checkHealth(),
    },
    () => audit.spool.isFull,
  );
  stack.defer(() => health.stop());
  const streaming: EventStreamsOptions = {
    log: databaseEventLog(db),
    wakeUps,
    onError: (error) => log.error({ err: error }, 'cannot read the event log'),
  };
  const streams = new EventStreams(overrides.streams?.(streaming) ?? streaming);
  stack.defer(() => streams.stop());
  const access = await buildAccess(
    {
      database,
      cache,
      secrets,
      passwords: new Passwords(),
      maxSessions: config.maxSessions,
      nowMs,
      isOwnClock: isEmbedded || overrides.nowMs !== undefined,
      mirror:
        'run' in cache
          ? sessionMirror({ run: (...args) => cache.run(...args), maxSessions: config.maxSessions, nowMs })
          : undefined,
      log,
      issuer: () => publicUrl.value,
    },
    stack,
  );
  const gasSources = new Map(
    Array.from(config.gasNodes, ([networkId, url]) => [
      networkId,
      stack.adopt(new RpcProvider(url), (source) => source.close()),
    ]),
  );
  const auditErasure = new AuditErasure(db, audit.auditSeals);
  const features = buildFeatures({
    database,
    bus,
    log,
    nowMs,
    gasSources,
    registersByMutation: config.registrationByMutation,
    wake: (nodeId, seq) => wakeUps.notify(nodeId, seq),
    auditErasure,
    // Other processes have their own spools, which cannot be flushed from here.
    auditSettled: () => (isEmbedded ? audit.auditWriter.flush() : setTimeout(AUDIT_DELAY_MS)),
  });
  const auditPages = new AuditPages(db, [issueToken.path, CONSOLE_SESSION]);
  return {
    config,
    secrets,
    log,
    nowMs,
    telemetry,
    database,
    cache,
    bus,
    ...audit,
    auditErasure,
    auditExports: new AuditExports({
      ...{ db, log, nowMs, keys: secrets.auditKeys },
      downloadPath: () => `${publicUrl.path}${downloadAuditExport.path}`,
    }),
    auditExportPages: new AuditExportPages(db),
    auditPages,
    search: new Search({ db, nowMs, auditPages, ...features }),
    attention: new AttentionFinder({ db, locks: access.locks, nowMs }),
    health,
    memory: new MemoryAccounts(),
    ...access,
    ...features,
    streams,
    rejectedWebhooks: new RejectedWebhooks({ log, nowMs }),
    // The key is derived from a secret that all processes share, so that they accept each other's cursors.
    cursors: new PageCursors(createHmac('sha256', secrets.jwt.user.current).update('portcullis page cursors').digest()),
    /**
     * The base of all URLs that the process gives out, and its path without a slash at the end, which stands before the
     * paths that it gives out. The base is empty until the process listens, unless it is configured.
     */
    publicUrl,
  };
}

/** The age of the last read of revocations, in ms, from which the health check asks the database itself. */
const HEALTHY_AGE_MS = 600;

/** The methods of the audit log that are called when a request or operation has ended. */
export type AuditTrail = Pick<AuditLog, 'record' | 'recordOperation' | 'recordUnparsed'>;

const LAST_DRAIN_MS = 5_000;
/** Between the checkpoints of a chain, and between the retries of refused records. */
const MINUTE_MS = 60_000;

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
  const keeper = new ChainKeeper({ db, seals, own: chain });
  const store = new AuditStore(db);
  const onError = (error: unknown) =>
    log.error({ err: error }, 'could not write audit records to the database; keeping them in the spool');
  const refusedRecords = new RefusedRecords({
    dir,
    nowMs,
    insert: (line) => store.insertAll([Buffer.from(line)]),
    canInsertProbe: () => store.canInsertProbe(),
    onGivenUp: onLost('refused', 'database rejected an audit record for ten minutes; moved it to refused.ndjson'),
  });
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
  const onUnsealed = (error: unknown) => log.error({ err: error }, 'no audit checkpoint within the last minute');
  stack.defer(
    every(MINUTE_MS, () => {
      keeper.checkpoint().catch(onUnsealed);
      refusedRecords.retry().catch(onError);
    }),
  );
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

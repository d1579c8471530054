import { createHmac } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { Passwords } from '../access/credentials/passwords.ts';
import { sessionMirror } from '../access/revocation/session-mirror.ts';
import { operationDurations } from '../api/graphql/execution/operation-observer.ts';
import { toolOutcomes } from '../api/mcp/kit/tool.ts';
import { AUDIT_DELAY_MS } from '../audit/audit-writer.ts';
import { AuditErasure } from '../audit/erasure.ts';
import type { EventBus } from '../events/bus/event-bus.ts';
import { ObservedBus } from '../events/bus/observed-bus.ts';
import { systemClock } from '../events/streams/clock.ts';
import { databaseEventLog } from '../events/streams/event-log.ts';
import { EventStreams, type EventStreamsOptions } from '../events/streams/event-streams.ts';
import { AttentionFinder } from '../features/attention/attention.service.ts';
import { downloadAuditExport } from '../features/audit-records/audit-exports.rest.ts';
import { AuditExportPages, AuditExports, AuditPages } from '../features/audit-records/audit-records.service.ts';
import { RpcProvider } from '../features/gas-fee/rpc-provider.service.ts';
import { Search } from '../features/search/search.service.ts';
import { RejectedWebhooks } from '../features/webhook/webhook.rest.ts';
import { ConnectionMetrics } from '../gateway/connections.ts';
import { RequestMetrics } from '../gateway/exchange/request-metrics.ts';
import { PageCursors } from '../lib/keyset.ts';
import type { Log } from '../lib/log.ts';
import type { Config } from '../platform/config/config.ts';
import type { Secrets } from '../platform/config/secrets.ts';
import { Health, VERSION } from '../platform/health.ts';
import { MemoryAccounts } from '../platform/held-memory.ts';
import { openTracing } from '../platform/telemetry/open-tracing.ts';
import { buildAccess } from './access.ts';
import { buildFeatures } from './features.ts';
import { type AuditTrail, openAudit } from './open-audit.ts';
import { openBus, openCache, openStore, openWakeUps } from './stores.ts';

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
  const bus = new ObservedBus(overrides.bus?.(opened) ?? opened, tracing.tracer, log);
  const telemetry = {
    tracer: tracing.tracer,
    requests: new RequestMetrics(),
    connections: new ConnectionMetrics(),
    operations: operationDurations(),
    toolOutcomes: toolOutcomes(),
    bus,
    exported: tracing.exported,
  };
  const audit = openAudit({ config, secrets, database, bus, log, nowMs, trail: overrides.audit, stack });
  const publicPath = URL.parse(config.publicUrl ?? '')?.pathname.replace(/\/$/, '') ?? '';
  const publicUrl = { value: config.publicUrl ?? '', path: publicPath };
  const health = new Health(
    {
      database: () => database.checkHealth(),
      cache: () => cache.checkHealth(),
      bus: () => bus.checkHealth(),
    },
    () => audit.spool.isFull,
  );
  stack.defer(() => health.stop());
  const streaming: EventStreamsOptions = {
    log: databaseEventLog(db),
    wakeUps,
    clock: { ...systemClock, nowMs },
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
  const auditPages = new AuditPages(db);
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

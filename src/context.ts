import type { Metric } from 'prom-client';
import { openAccess, openLimits } from './access-of.ts';
import type { AuditWriter } from './audit/audit-writer.ts';
import type { RefusedRecords } from './audit/refused-records.ts';
import type { AuditSpool } from './audit/spool.ts';
import { type AuditTrail, openAudit } from './audit-of.ts';
import type { Cache } from './cache/cache.ts';
import { ClientAdministration } from './clients/client-administration.service.ts';
import { Clients } from './clients/clients.service.ts';
import type { Config } from './config/config.ts';
import type { Secrets } from './config/secrets.ts';
import type { Database } from './database.ts';
import type { EventBus } from './events/event-bus.ts';
import type { GasFees } from './gas-fee/gas-fees.service.ts';
import { openGasFees } from './gas-fees-of.ts';
import { Health, VERSION } from './health/health.ts';
import type { IdempotentAnswers } from './idempotency/idempotent-answers.ts';
import type { Log } from './lib/log.ts';
import type { AccessChanges } from './oauth/access-changes.ts';
import type { AccessDirectory } from './oauth/access-directory.ts';
import type { AccessWatch } from './oauth/access-watch.ts';
import type { ClientLimits } from './oauth/client-limits.ts';
import type { DatabaseClock } from './oauth/database-clock.ts';
import type { DenyList } from './oauth/deny-list.ts';
import type { Guard } from './oauth/guards.ts';
import { importJwtKeys } from './oauth/jwt-keys.ts';
import { LoginLocks } from './oauth/login-locks.ts';
import { Passwords } from './oauth/passwords.ts';
import type { Sessions } from './oauth/sessions.ts';
import type { Throttle } from './oauth/throttle.ts';
import { TokenIssuer } from './oauth/token-issuer.ts';
import type { TokenJudge } from './oauth/token-judge.ts';
import { TokenVerifier } from './oauth/token-verifier.ts';
import type { OutboxRelay } from './outbox/outbox-relay.ts';
import { databaseEventLog } from './realtime/database-event-log.ts';
import { EventStreams, type EventStreamsOptions } from './realtime/event-streams.ts';
import type { WakeUps } from './realtime/wake-ups.ts';
import { openBus, openCache, openStore, openWakeUps } from './stores.ts';
import { SupervisorAdministration } from './supervisors/supervisor-administration.service.ts';
import { Supervisors } from './supervisors/supervisors.service.ts';
import { openTracing } from './telemetry/open-tracing.ts';
import { openTelemetry, type Telemetry } from './telemetry-of.ts';
import { Transactions } from './transactions/transactions.service.ts';
import type { MigrationFiles } from './user-migrations/migration-files.service.ts';
import type { MigrationJobs } from './user-migrations/migration-jobs.ts';
import type { UserMigrations } from './user-migrations/user-migrations.service.ts';
import type { UserErasure } from './users/user-erasure.service.ts';
import { openUsers } from './users-of.ts';
import { WrongPasswords } from './webhook/wrong-passwords.ts';

/** What a test may put in the place of the real part. */
export interface Overrides {
  log?: Log;
  nowMs?: () => number;
  /** How far the clock of this process is ahead of the others', where `nowMs` is the real one. */
  skewMs?: number;
  bus?: (bus: EventBus) => EventBus;
  /** Takes what was answered, in the place of the spool and the log. */
  audit?: AuditTrail;
  /** What the subscribers' events are made from. */
  streams?: (options: EventStreamsOptions) => EventStreamsOptions;
}

/** Every part of a running instance, built once. */
export interface Context {
  config: Config;
  secrets: Secrets;
  log: Log;
  nowMs: () => number;
  telemetry: Telemetry;
  database: Database;
  cache: Cache;
  bus: EventBus;
  wakeUps: WakeUps;
  spool: AuditSpool;
  auditWriter: AuditWriter;
  auditRefused: RefusedRecords;
  auditLost: Metric;
  audit: AuditTrail;
  health: Health;
  clients: Clients;
  supervisors: Supervisors;
  clientAdministration: ClientAdministration;
  supervisorAdministration: SupervisorAdministration;
  passwords: Passwords;
  locks: LoginLocks;
  sessions: Sessions;
  /** The time by which tokens are issued and ended. */
  clock: DatabaseClock;
  changes: AccessChanges;
  denied: DenyList;
  directory: AccessDirectory;
  /** Those who are told when a token has ended. */
  watch: AccessWatch;
  limits: ClientLimits;
  /** The client-level guards, in their order. */
  guards: readonly Guard[];
  guardDecisions: Metric;
  throttle: Throttle;
  /** Of the webhook. */
  wrongPasswords: WrongPasswords;
  issuer: TokenIssuer;
  verifier: TokenVerifier;
  judge: TokenJudge;
  transactions: Transactions;
  /** Relays nothing until it is started. */
  outbox: OutboxRelay;
  idempotentAnswers: IdempotentAnswers;
  userMigrations: UserMigrations;
  migrationFiles: MigrationFiles;
  /** Runs none until it is started. */
  migrationJobs: MigrationJobs;
  userErasure: UserErasure;
  streams: EventStreams;
  gasFees: GasFees;
  /** The base of every address that the instance gives out; known once it listens. */
  publicUrl: { value: string };
}

interface ContextInput {
  config: Config;
  secrets: Secrets;
  log: Log;
  overrides: Overrides;
  /** Takes what is to be stopped, in the order in which it was started. */
  stack: AsyncDisposableStack;
}

/** The composition root: the only place that constructs the database, the cache, the bus and what stands on them. */
export async function createContext({ config, secrets, log: given, overrides, stack }: ContextInput): Promise<Context> {
  const tracing = await openTracing(config.tracing, { log: given, version: VERSION }, stack);
  const { log } = tracing;
  const { skewMs = 0 } = overrides;
  const nowMs = overrides.nowMs ?? (skewMs === 0 ? Date.now : () => Date.now() + skewMs);
  const [database, cache, wakeUps] = await Promise.all([
    openStore(config, stack),
    openCache(config, log, stack),
    openWakeUps(config, log, stack),
  ]);
  const { db } = database;
  const opened = await openBus(config, db, log, stack);
  const telemetry = openTelemetry(tracing, overrides.bus?.(opened) ?? opened);
  const { bus } = telemetry;
  const audit = openAudit({ config, database, log, nowMs, trail: overrides.audit, stack });
  const clients = new Clients(db, secrets.pepper);
  const supervisors = new Supervisors(db);
  const keys = await importJwtKeys(secrets.jwt);
  const publicUrl = { value: config.publicUrl ?? '' };
  const health = new Health({
    database: () => database.checkHealth(),
    cache: () => cache.checkHealth(),
    bus: () => bus.checkHealth(),
  });
  stack.defer(() => health.stop());
  const streaming: EventStreamsOptions = {
    log: databaseEventLog(db),
    wakeUps,
    onError: (error) => log.error({ err: error }, 'the event log cannot be read'),
  };
  const streams = new EventStreams(overrides.streams?.(streaming) ?? streaming);
  stack.defer(() => streams.stop());
  const verifier = new TokenVerifier(keys);
  const access = openAccess(
    { config, database, cache, clients, verifier, log, nowMs, isTimeMade: overrides.nowMs !== undefined },
    stack,
  );
  const logins = { passwords: new Passwords(), locks: new LoginLocks({ db, nowMs }) };
  const administration = { db, ...access, ...logins, pepper: secrets.pepper.current, nowMs };
  return {
    config,
    secrets,
    log,
    nowMs,
    telemetry,
    database,
    cache,
    bus,
    wakeUps,
    ...audit,
    health,
    clients,
    supervisors,
    clientAdministration: new ClientAdministration(administration),
    supervisorAdministration: new SupervisorAdministration(administration),
    ...logins,
    ...access,
    ...openLimits({ database, cache, log, nowMs }, stack),
    wrongPasswords: new WrongPasswords({ log, nowMs }),
    issuer: new TokenIssuer({ keys, issuer: () => publicUrl.value, nowMs: () => access.clock.nowMs() }),
    verifier,
    transactions: new Transactions({
      db,
      registersByMutation: config.registrationByMutation,
      wake: (nodeId, seq) => wakeUps.notify(nodeId, seq.toString()),
      conflicted: (id) => log.warn({ transaction_id: id }, 'a transaction was told to be done and to have failed'),
    }),
    ...openUsers({ database, bus, log, nowMs, auditWriter: audit.auditWriter }),
    streams,
    gasFees: openGasFees({ config, nowMs, log }, stack),
    publicUrl,
  };
}

import type { Metric } from 'prom-client';
import { lagMetrics } from '../events/bus/observed-bus.ts';
import { type Backlog, readBacklog } from '../features/status/status.service.ts';
import { MemoizedRead } from '../lib/memoized-read.ts';
import { counters, gauge, gauges } from '../lib/meters.ts';
import type { DbAndClock } from '../platform/database/database.ts';
import { ACCOUNT_KINDS } from '../platform/held-memory.ts';
import type { Context } from './context.ts';

/** Returns the metrics of a process: metrics of every process and of its role. */
export function metricsOf(context: Context): Metric[] {
  const { config, database, health, changes, outbox, streams, spool, auditWriter, memory, gasFees } = context;
  const { telemetry, limits, throttle, rejectedWebhooks, guards, nowMs } = context;
  const { requests, operations, bus, exported } = telemetry;
  const always = [
    gauges({
      name: 'portcullis_build_info',
      help: 'Always 1; the labels contain the version and the role.',
      labelNames: ['version', 'role'],
      read: () => [[{ version: health.report().version, role: config.role }, 1]],
    }),
    gauges({
      name: 'portcullis_part_up',
      help: '1 if the last health check of the dependency succeeded, otherwise 0.',
      labelNames: ['part'],
      read: () => Object.entries(health.stores).map(([part, state]) => [{ part }, Number(state === 'ok')]),
    }),
    gauge(
      'portcullis_revocation_lag_seconds',
      'Seconds since this process last started a successful read of revocations.',
      () => changes.ageMs / 1_000,
    ),
    ...bus.metrics,
    ...database.metrics,
    exported,
    context.transactions.flagged,
    gauges({
      name: 'portcullis_loop_age_seconds',
      help: 'Seconds since a background loop last began a pass: outbox (publishes events), event_log (reads events for subscribers; 0 without any).',
      labelNames: ['loop'],
      read: () => [
        ...(config.role === 'gateway' ? [] : [[{ loop: 'outbox' }, outbox.ageMs / 1_000] as const]),
        ...(config.role === 'worker' ? [] : [[{ loop: 'event_log' }, streams.tailersAgeMs / 1_000] as const]),
      ],
    }),
    context.auditLost,
    context.auditUnrecorded,
    gauge(
      'portcullis_audit_spool_records',
      'Audit records in the spool that are not in the database yet.',
      () => spool.pendingLines,
    ),
    gauge('portcullis_audit_spool_bytes', 'Disk space used by the audit spool.', () => spool.bytesOnDisk),
    gauge(
      'portcullis_audit_spool_age_seconds',
      'Seconds since an audit record was last written to the database while others wait; 0 if none wait.',
      () => spool.waitedMs / 1_000,
    ),
    gauge(
      'portcullis_audit_spool_bytes_until_full',
      'Bytes until the audit spool is full, by its limit or by the free space of its disk.',
      () => spool.bytesUntilFull().catch(() => undefined),
    ),
    gauge(
      'portcullis_audit_spool_full',
      '1 if the audit spool is full and requests are rejected, otherwise 0.',
      () => spool.isFull,
    ),
    counters({
      name: 'portcullis_audit_spool_damaged_records_total',
      help: 'Audit records that a crash left incomplete and that were skipped.',
      labelNames: [],
      read: () => [[{}, spool.damagedLines]],
    }),
    gauge(
      'portcullis_audit_writer_failing',
      '1 if the database rejected the last audit records, otherwise 0.',
      () => auditWriter.isFailing,
    ),
  ];
  const ofGateway = [
    ...requests.metrics,
    ...telemetry.connections.metrics,
    gauges({
      name: 'portcullis_held_memory_bytes',
      help: 'Estimated memory that requests in progress hold, by kind of account (tenant, webhook, authentication, unidentified).',
      labelNames: ['account'],
      read: () => ACCOUNT_KINDS.map((account) => [{ account }, memory.summaryOf(account).bytes]),
    }),
    gauges({
      name: 'portcullis_memory_accounts_near_limit',
      help: 'Memory accounts that hold more than 80% of an equal share of the total, by kind of account.',
      labelNames: ['account'],
      read: () => ACCOUNT_KINDS.map((account) => [{ account }, memory.summaryOf(account).near]),
    }),
    counters({
      name: 'portcullis_memory_refusals_total',
      help: 'Requests refused because their account held the most memory, by kind of account.',
      labelNames: ['account'],
      read: () => ACCOUNT_KINDS.map((account) => [{ account }, memory.refusals[account]]),
    }),
    operations,
    telemetry.toolOutcomes,
    limits.countedAlone,
    guards.decisions,
    throttle.wrongSecrets,
    context.wrongSecrets.longest,
    rejectedWebhooks.rejections,
    rejectedWebhooks.wrongPasswords,
    gauge(
      'portcullis_subscriptions',
      'Open subscriptions, over event streams and WebSockets.',
      () => streams.load.streams,
    ),
    gauge(
      'portcullis_subscribed_nodes',
      'Tenants whose event log this process reads for subscribers.',
      () => streams.load.tailers,
    ),
    gauges({
      name: 'portcullis_gas_fee_networks',
      help: 'Networks, by state of their gas fee (fresh, stale, unavailable, unasked).',
      labelNames: ['state'],
      read: () => Object.entries(gasFees.states()).map(([state, count]) => [{ state }, count]),
    }),
  ];
  const ofWorker = [...backlogMetrics({ db: database.db, nowMs }), ...lagMetrics(bus)];
  return [...always, ...(config.role === 'worker' ? [] : ofGateway), ...(config.role === 'gateway' ? [] : ofWorker)];
}

/**
 * How long the numbers are reused before the tables are read again, in milliseconds, however many scrapes there are.
 */
const MAX_AGE_MS = 5_000;
const DEADLINE_MS = 2_000;

/** Returns gauges of the work that waits in the database, for workers; one statement reads all of them. */
function backlogMetrics({ db, nowMs }: DbAndClock): Metric[] {
  const snapshot = new MemoizedRead(() => readBacklog({ db, nowMs }), {
    maxAgeMs: MAX_AGE_MS,
    deadlineMs: DEADLINE_MS,
  });
  const backlog = (name: string, help: string, countIn: (backlog: Backlog) => number) =>
    gauge(name, help, async () => {
      // While the database is down, the numbers are unknown.
      const waiting = await snapshot.get();
      return waiting && countIn(waiting);
    });
  return [
    backlog(
      'portcullis_outbox_events',
      'Events waiting in the outbox; 100000 means at least that many.',
      ({ outbox }) => outbox,
    ),
    backlog(
      'portcullis_outbox_oldest_seconds',
      'Age of the oldest event in the outbox; 0 if it is empty.',
      ({ outbox_oldest: seconds }) => seconds,
    ),
    backlog(
      'portcullis_parked_notifications',
      'Notifications waiting for their transaction to be registered; 100000 means at least that many.',
      ({ parked }) => parked,
    ),
    backlog(
      'portcullis_transactions_unregistered',
      'Unregistered transactions that have notifications waiting; 100000 means at least that many.',
      ({ unregistered }) => unregistered,
    ),
    backlog('portcullis_migrations_running', 'File migrations in progress.', ({ running }) => running),
    backlog('portcullis_migrations_waiting', 'File migrations waiting to start.', ({ waiting }) => waiting),
    backlog(
      'portcullis_quotas_running_out',
      'Active clients that have used a quarter of their monthly quota or more, and a larger part of it than has passed of the month.',
      ({ quotas }) => quotas,
    ),
  ];
}

import { Counter, Gauge, type Metric } from 'prom-client';
import { lagMetric } from '../events/bus/observed-bus.ts';
import { backlogMetrics } from './backlog.ts';
import type { Context } from './context.ts';

/** Returns the metrics of a process: those that every process has, and those of its role. */
export function metricsOf(context: Context): Metric[] {
  const { config, database, telemetry, limits, throttle, rejectedWebhooks, guards, nowMs } = context;
  const { requests, operations, bus, exported } = telemetry;
  const always = [
    buildInfo(context),
    ...partMetrics(context),
    ...bus.metrics,
    ...database.metrics,
    exported,
    context.transactions.flagged,
    ...spoolMetrics(context),
  ];
  const ofGateway = [
    ...requests.metrics,
    ...telemetry.connections.metrics,
    operations,
    telemetry.toolOutcomes,
    limits.countedAlone,
    guards.decisions,
    throttle.wrongSecrets,
    rejectedWebhooks.rejections,
    rejectedWebhooks.wrongPasswords,
    ...streamMetrics(context),
    gasFeeMetric(context),
  ];
  const ofWorker = [...backlogMetrics({ db: database.db, nowMs }), lagMetric(bus)];
  return [...always, ...(config.role === 'worker' ? [] : ofGateway), ...(config.role === 'gateway' ? [] : ofWorker)];
}

function buildInfo({ config, health }: Context): Metric {
  return gauge('portcullis_build_info', 'Always 1; what runs, and in which role.', ['version', 'role'], (metric) =>
    metric.set({ version: health.report().version, role: config.role }, 1),
  );
}

function partMetrics({ health, cache, changes }: Context): Metric[] {
  return [
    gauge('portcullis_part_up', 'Whether the last probe of a part was answered (1) or not (0).', ['part'], (metric) => {
      for (const [part, state] of Object.entries(health.report().checks)) metric.set({ part }, state === 'ok' ? 1 : 0);
    }),
    counter(
      'portcullis_cache_connections_total',
      'Connections to the cache that there have been, and changes of the masters of a Redis Cluster.',
      () => cache.generation,
    ),
    gauge(
      'portcullis_cache_refusing',
      '1 if Redis answered the last health check with an error, otherwise 0.',
      [],
      (metric) => metric.set(cache.isRefusing ? 1 : 0),
    ),
    gauge(
      'portcullis_revocation_lag_seconds',
      'Seconds since this process last began to read revocations that it has applied.',
      [],
      (metric) => metric.set(changes.ageMs / 1_000),
    ),
  ];
}

function spoolMetrics({ spool, auditWriter, auditLost }: Context): Metric[] {
  return [
    auditLost,
    gauge(
      'portcullis_audit_spool_records',
      'Audit records of this process that are not in the database yet.',
      [],
      (metric) => metric.set(spool.pendingLines),
    ),
    gauge('portcullis_audit_spool_bytes', 'What the audit spool of this process takes on its disk.', [], (metric) =>
      metric.set(spool.bytesOnDisk),
    ),
    gauge(
      'portcullis_audit_spool_age_seconds',
      'How long audit records wait since one was last written; 0 where none waits.',
      [],
      (metric) => metric.set(spool.waitedMs / 1_000),
    ),
    gauge(
      'portcullis_audit_spool_full',
      'Whether the audit spool is full (1): requests are refused then.',
      [],
      (metric) => metric.set(spool.isFull ? 1 : 0),
    ),
    counter(
      'portcullis_audit_spool_damaged_records_total',
      'Audit records that were torn by a crash, and left out.',
      () => spool.damagedLines,
    ),
    gauge('portcullis_audit_writer_failing', 'Whether the database refused the last audit records (1).', [], (metric) =>
      metric.set(auditWriter.isFailing ? 1 : 0),
    ),
  ];
}

function streamMetrics({ streams }: Context): Metric[] {
  return [
    gauge(
      'portcullis_subscriptions',
      'Subscriptions to events that are open, on event streams and WebSockets.',
      [],
      (metric) => metric.set(streams.load.streams),
    ),
    gauge('portcullis_subscribed_nodes', 'Nodes whose event log is read for subscribers.', [], (metric) =>
      metric.set(streams.load.tailers),
    ),
  ];
}

function gasFeeMetric({ gasFees }: Context): Metric {
  return gauge(
    'portcullis_gas_fee_networks',
    'Networks whose gas fee is asked for, by what is known of it: fresh, stale, unavailable, or unasked.',
    ['state'],
    (metric) => {
      for (const [state, count] of Object.entries(gasFees.states())) metric.set({ state }, count);
    },
  );
}

function gauge<Label extends string>(
  name: string,
  help: string,
  labelNames: Label[],
  collect: (metric: Gauge<Label>) => void,
): Gauge<Label> {
  return new Gauge({
    name,
    help,
    labelNames,
    registers: [],
    collect() {
      collect(this);
    },
  });
}

function counter(name: string, help: string, count: () => number): Counter {
  return new Counter({
    name,
    help,
    registers: [],
    collect() {
      this.reset();
      this.inc(count());
    },
  });
}

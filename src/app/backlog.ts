import type { Metric } from 'prom-client';
import { isoFromPg } from '../lib/instants.ts';
import { MemoizedRead } from '../lib/memoized-read.ts';
import { gauge } from '../lib/meters.ts';
import type { DbAndClock } from '../platform/database/database.ts';

/** The amounts of work that wait in the database, and when the oldest event of the outbox was written. */
interface Waiting {
  outbox: string | number;
  oldest: string | null;
  parked: string | number;
  unregistered: string | number;
  running: string | number;
  waiting: string | number;
  quotas: string | number;
}

/** The number at which the counting of rows stops: more are just as alarming, but cost more to count. */
const MAX_COUNTED = 100_000;
/**
 * How long the numbers are reused before the tables are read again, in milliseconds, however many scrapes there are.
 */
const MAX_AGE_MS = 5_000;
const DEADLINE_MS = 2_000;

/** Returns gauges of the work that waits in the database, for workers; one statement reads all of them. */
export function backlogMetrics({ db, nowMs }: DbAndClock): Metric[] {
  const snapshot = new MemoizedRead(() => readWaiting({ db, nowMs }), {
    maxAgeMs: MAX_AGE_MS,
    deadlineMs: DEADLINE_MS,
  });
  const backlog = (name: string, help: string, countIn: (waiting: Waiting) => string | number) =>
    gauge(name, help, async () => {
      // While the database is down, the numbers are unknown.
      const waiting = await snapshot.get();
      return waiting && Number(countIn(waiting));
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
      ({ oldest }) => (oldest === null ? 0 : Math.max(0, nowMs() - Date.parse(isoFromPg(oldest))) / 1_000),
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

async function readWaiting({ db, nowMs }: DbAndClock): Promise<Waiting> {
  const now = new Date(nowMs()).toISOString();
  const [row] = await db.unscoped('backlogs are counted over all nodes').raw(
    (sql) => sql<Waiting>`
      select
        (select count(*) from (select 1 from outbox limit ${MAX_COUNTED}) o) as outbox,
        (select created_at from outbox order by seq limit 1) as oldest,
        (select count(*) from (select 1 from parked_notifications limit ${MAX_COUNTED}) p) as parked,
        (select count(*) from (select 1 from transaction_lookups limit ${MAX_COUNTED}) l) as unregistered,
        (select count(*) from migration_jobs where lease_until > ${now}::timestamptz) as running,
        (select count(*) from migration_jobs where lease_until <= ${now}::timestamptz) as waiting,
        (select count(*) from (select ${now}::timestamptz as now, date_trunc('month', ${now}::timestamptz) as month) t
          join client_quotas q on q.month = to_char(t.month, 'YYYY-MM')
          join clients c on c.id = q.client_id and c.status = 'active' and c.monthly_limit > 0
          where q.used >= c.monthly_limit * greatest(0.25, extract(epoch from t.now - t.month)
            / extract(epoch from t.month + interval '1 month' - t.month))) as quotas`,
  );
  if (!row) throw new Error('a count returns one row');
  return row;
}

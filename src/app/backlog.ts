import type { Metric } from 'prom-client';
import { type Backlog, readBacklog } from '../features/status/status.store.ts';
import { MemoizedRead } from '../lib/memoized-read.ts';
import { gauge } from '../lib/meters.ts';
import type { DbAndClock } from '../platform/database/database.ts';

/**
 * How long the numbers are reused before the tables are read again, in milliseconds, however many scrapes there are.
 */
const MAX_AGE_MS = 5_000;
const DEADLINE_MS = 2_000;

/** Returns gauges of the work that waits in the database, for workers; one statement reads all of them. */
export function backlogMetrics({ db, nowMs }: DbAndClock): Metric[] {
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

import type { Metric } from 'prom-client';
import { deleteExpiredRows } from '../access/tokens/revocations.ts';
import { AuditRetention } from '../audit/audit-retention.ts';
import { deleteOldEvents } from '../events/streams/event-log.ts';
import { startReferenceConsumers } from '../features/reference/reference.consumers.ts';
import {
  LOOKUPS_AT_ONCE,
  TransactionLookups,
  TransactionOwner,
} from '../features/transactions/transaction-lookups.service.ts';
import { startTransactionConsumers } from '../features/transactions/transaction-messages.service.ts';
import type { LookupConfig } from '../gateway/endpoints/gateway-config.ts';
import { pause } from '../lib/work-loop.ts';
import type { Context } from './context.ts';

const FIRST_AFTER_MS = 60_000;
const EVERY_MS = 3_600_000;
const DAY_MS = 24 * 3_600_000;

/**
 * Deletes rows that are past their retention, a minute after the start and then an hour after each end, until `signal`
 * aborts. A task that fails stops no other.
 */
async function runRetention(
  { config, database, auditSeals: seals, auditErasure, idempotentResponses, migrationJobs, nowMs, log }: Context,
  signal: AbortSignal,
): Promise<void> {
  const { db } = database;
  const audit = new AuditRetention({ db, seals, nowMs, retentionDays: config.auditRetentionDays });
  const tasks: Readonly<Record<string, () => Promise<void>>> = {
    'audit records': () => audit.enforce(),
    erasures: () => auditErasure.repeat(nowMs() - config.auditRetentionDays * DAY_MS),
    'transaction events': () => deleteOldEvents({ db, nowMs, retentionDays: config.eventsRetentionDays }),
    'ended tokens': () => deleteExpiredRows({ db, nowMs }),
    'idempotent answers': () => idempotentResponses.prune(),
    uploads: () => migrationJobs.deleteAbandoned(),
  };
  for (let delayMs = FIRST_AFTER_MS; ; delayMs = EVERY_MS) {
    await pause(delayMs, signal);
    for (const [task, work] of Object.entries(tasks)) {
      if (signal.aborted) return;
      await work().catch((error: unknown) => {
        log.error({ err: error, task }, 'could not delete expired rows');
      });
    }
  }
}

/**
 * Starts the work of a worker: it applies events, relays the outbox, runs user migrations and audit exports, and does the housekeeping.
 */
export async function startConsumers(context: Context, stack: AsyncDisposableStack): Promise<void> {
  const subscriptions = [...(await startTransactionConsumers(context)), await startReferenceConsumers(context)];
  stack.defer(async () => {
    await Promise.all(subscriptions.map((subscription) => subscription.stop()));
  });
  for (const part of [context.outbox, context.migrationJobs, context.auditExports]) {
    part.start();
    stack.defer(() => part.stop());
  }
  const stopping = new AbortController();
  const housekeeping = runRetention(context, stopping.signal);
  stack.defer(() => {
    stopping.abort();
    return housekeeping;
  });
}

/**
 * Starts looking up registrations at the transactions' owner, if `gateway.yaml` configures it. Returns the lookups'
 * metrics, if any.
 */
export function startLookups(
  { database: { db }, log, nowMs, transactions }: Context,
  { lookup, bearer }: { lookup: LookupConfig | undefined; bearer: string | undefined },
  stack: AsyncDisposableStack,
): Metric[] {
  if (!lookup) return [];
  const { url, timeout_ms: timeoutMs } = lookup;
  const owner = new TransactionOwner({ url, timeoutMs, bearer, connections: LOOKUPS_AT_ONCE });
  stack.defer(() => owner.close());
  const lookups = new TransactionLookups({ db, log, nowMs, transactions, owner, timeoutMs });
  lookups.start();
  stack.defer(() => lookups.stop());
  return [lookups.outcomes];
}

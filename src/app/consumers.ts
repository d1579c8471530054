import type { Metric } from 'prom-client';
import { deleteExpiredRows } from '../access/tokens/revocations.ts';
import { AuditRetention } from '../audit/audit-retention.ts';
import { startReferenceConsumers } from '../domain/reference/reference-consumers.ts';
import { LOOKUPS_AT_ONCE, TransactionLookups } from '../domain/transactions/transaction-lookups.ts';
import { startTransactionConsumers } from '../domain/transactions/transaction-messages.ts';
import { TransactionOwner } from '../domain/transactions/transaction-owner.ts';
import { deleteOldEvents } from '../events/streams/event-log.ts';
import type { LookupConfig } from '../gateway/endpoints/gateway-config.ts';
import type { Context } from './context.ts';

interface HousekeepingParts {
  /** The tasks, by their names in log lines. */
  tasks: Readonly<Record<string, () => Promise<void>>>;
  onError(error: unknown, task: string): void;
}

const FIRST_AFTER_MS = 60_000;
const EVERY_MS = 3_600_000;
const DAY_MS = 24 * 3_600_000;

/** The housekeeping: runs its tasks one after another, a minute after the start and then an hour after each end. */
class Housekeeping {
  readonly #parts: HousekeepingParts;
  #timer: NodeJS.Timeout | undefined;
  #working: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(parts: HousekeepingParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#workIn(FIRST_AFTER_MS);
  }

  /** Stops after the task that is running. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#working;
  }

  /** Runs every task once, even if one of them fails. */
  async work(): Promise<void> {
    for (const [name, task] of Object.entries(this.#parts.tasks)) {
      if (this.#isStopped) return;
      await task().catch((error: unknown) => this.#parts.onError(error, name));
    }
  }

  #workIn(delayMs: number): void {
    this.#timer = setTimeout(() => {
      this.#working = this.work().then(() => {
        if (!this.#isStopped) this.#workIn(EVERY_MS);
      });
    }, delayMs).unref();
  }
}

/** Makes the housekeeping of a worker: it deletes rows that are past their retention. */
function housekeepingOf({
  config,
  database: { db },
  auditSeals: seals,
  auditErasure,
  idempotentResponses,
  nowMs,
  log,
}: Context): Housekeeping {
  const audit = new AuditRetention({ db, seals, nowMs, retentionDays: config.auditRetentionDays });
  return new Housekeeping({
    tasks: {
      'audit records': () => audit.keep(),
      erasures: () => auditErasure.repeat(nowMs() - config.auditRetentionDays * DAY_MS),
      'transaction events': () => deleteOldEvents({ db, nowMs, retentionDays: config.eventsRetentionDays }),
      'ended tokens': () => deleteExpiredRows({ db, nowMs }),
      'idempotent answers': () => idempotentResponses.prune(),
    },
    onError: (error, task) => log.error({ err: error, task }, 'what is past its days could not be put away'),
  });
}

/**
 * Starts the work of a worker: it applies events, relays the outbox, runs user migrations and does the housekeeping.
 */
export async function startConsumers(context: Context, stack: AsyncDisposableStack): Promise<void> {
  const subscriptions = [...(await startTransactionConsumers(context)), await startReferenceConsumers(context)];
  stack.defer(async () => {
    await Promise.all(subscriptions.map((subscription) => subscription.stop()));
  });
  startRelay(context, stack);
  const housekeeping = housekeepingOf(context);
  housekeeping.start();
  stack.defer(() => housekeeping.stop());
}

function startRelay({ outbox, migrationJobs }: Context, stack: AsyncDisposableStack): void {
  outbox.start();
  stack.defer(() => outbox.stop());
  migrationJobs.start();
  stack.defer(() => migrationJobs.stop());
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

import type { Context } from './context.ts';
import { housekeepingOf } from './housekeeping-of.ts';
import { Reference } from './reference/reference.service.ts';
import { startReferenceConsumers } from './reference/reference-consumers.ts';
import { startTransactionConsumers } from './transactions/transaction-consumers.ts';

/** Starts what a worker does: it applies events, sends what waits in the outbox, and keeps house. */
export async function startConsumers(context: Context, stack: AsyncDisposableStack): Promise<void> {
  const subscriptions = [...(await startTransactionConsumers(context)), await startReferenceConsumer(context)];
  stack.defer(async () => {
    await Promise.all(subscriptions.map((subscription) => subscription.stop()));
  });
  startRelay(context, stack);
  const housekeeping = housekeepingOf(context);
  housekeeping.start();
  stack.defer(() => housekeeping.stop());
}

function startReferenceConsumer({ bus, database, log, nowMs }: Context) {
  const dropped = (kind: string, id: string, reason: string) =>
    log.warn({ kind, id, reason }, 'a row of reference data had waited for its parent and cannot be applied');
  return startReferenceConsumers({ bus, reference: new Reference({ db: database.db, nowMs, dropped }) });
}

function startRelay({ outbox, migrationJobs }: Context, stack: AsyncDisposableStack): void {
  outbox.start();
  stack.defer(() => outbox.stop());
  migrationJobs.start();
  stack.defer(() => migrationJobs.stop());
}

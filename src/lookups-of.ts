import { Gauge, type Metric } from 'prom-client';
import type { Context } from './context.ts';
import type { LookupConfig } from './gateway/lookup-config.ts';
import { LookupStore } from './transactions/lookup-store.ts';
import { LOOKUPS_AT_ONCE, TransactionLookups } from './transactions/transaction-lookups.ts';
import { TransactionOwner } from './transactions/transaction-owner.ts';

/**
 * Starts what asks the owning service for transactions, where `gateway.yaml` names one. Gives the metrics of a process
 * that applies notifications, with a service or without.
 */
export function startLookups(
  { database: { db }, log, nowMs, transactions }: Context,
  { lookup, variables }: { lookup: LookupConfig | undefined; variables: NodeJS.ProcessEnv },
  stack: AsyncDisposableStack,
): Metric[] {
  const waiting = unregistered(new LookupStore(db));
  if (!lookup) return [waiting];
  const { url, timeout_ms: timeoutMs, bearer_env: name } = lookup;
  const bearer = name === undefined ? undefined : variables[name];
  const owner = new TransactionOwner({ url, timeoutMs, bearer, connections: LOOKUPS_AT_ONCE });
  stack.defer(() => owner.close());
  const lookups = new TransactionLookups({ db, log, nowMs, transactions, owner, timeoutMs });
  lookups.start();
  stack.defer(() => lookups.stop());
  return [waiting, lookups.outcomes];
}

function unregistered(store: LookupStore): Gauge {
  return new Gauge({
    name: 'portcullis_transactions_unregistered',
    help: 'Transactions that notifications wait for, since nobody has registered them.',
    registers: [],
    async collect() {
      this.set(await store.depth());
    },
  });
}

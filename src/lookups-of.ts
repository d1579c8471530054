import type { Metric } from 'prom-client';
import type { Context } from './context.ts';
import type { LookupConfig } from './gateway/lookup-config.ts';
import { LOOKUPS_AT_ONCE, TransactionLookups } from './transactions/transaction-lookups.ts';
import { TransactionOwner } from './transactions/transaction-owner.ts';

/**
 * Starts what asks the owning service for transactions, where `gateway.yaml` names one. Gives what it counts.
 */
export function startLookups(
  { database: { db }, log, nowMs, transactions }: Context,
  { lookup, variables }: { lookup: LookupConfig | undefined; variables: NodeJS.ProcessEnv },
  stack: AsyncDisposableStack,
): Metric[] {
  if (!lookup) return [];
  const { url, timeout_ms: timeoutMs, bearer_env: name } = lookup;
  const bearer = name === undefined ? undefined : variables[name];
  const owner = new TransactionOwner({ url, timeoutMs, bearer, connections: LOOKUPS_AT_ONCE });
  stack.defer(() => owner.close());
  const lookups = new TransactionLookups({ db, log, nowMs, transactions, owner, timeoutMs });
  lookups.start();
  stack.defer(() => lookups.stop());
  return [lookups.outcomes];
}

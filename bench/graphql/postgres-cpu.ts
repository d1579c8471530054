import type { PostgresClient } from '../../test/support/services/pg-client.ts';
import { threadsMs } from '../lib/process-stats.ts';

const BACKENDS = `select pid from pg_stat_activity
  where datname = current_database() and backend_type = 'client backend' and application_name = $1`;

/** Milliseconds of CPU by process of PostgreSQL. */
export type BackendCpu = ReadonlyMap<number, number>;

/** What the connections of an application have used so far; each of them is a process of PostgreSQL. */
export async function backendCpu(client: PostgresClient, application: string): Promise<BackendCpu> {
  const { rows } = await client.query(BACKENDS, [application]);
  return new Map(rows.map(({ pid }) => [Number(pid), threadsMs(Number(pid))]));
}

/** Milliseconds between two readings; what a new connection has used counts in full. */
export function spentBetween(before: BackendCpu, after: BackendCpu): number {
  return [...after].reduce((sum, [pid, ms]) => sum + ms - (before.get(pid) ?? 0), 0);
}

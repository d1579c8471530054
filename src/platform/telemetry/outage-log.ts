import type { Log } from '../../lib/log.ts';
import type { Store } from '../health.ts';

const EVERY_MS = 60_000;
const NAMES: Readonly<Record<Store, string>> = { database: 'PostgreSQL', cache: 'Redis', bus: 'Kafka' };

/** Returns the store that an error, or one of its causes, names as unavailable; undefined for any other error. */
function storeOf(error: unknown, causes = 5): Store | undefined {
  if (!(error instanceof Error) || causes === 0) return undefined;
  return 'store' in error ? (error.store as Store) : storeOf(error.cause, causes - 1);
}

/**
 * Returns a log that tells the outage of a store once, with the line of the first failure. What fails next is counted,
 * and told once a minute: how often each other line would have been written. A line is about a store if its `store`,
 * `err` or `error` says so.
 */
export function outageLog(log: Log, everyMs = EVERY_MS): Log {
  const failed = new Map<Store, Record<string, number>>();

  function about(level: 'debug' | 'info' | 'warn' | 'error') {
    return (fields: { store?: Store; err?: unknown; error?: unknown }, message: string): void => {
      const { error, store = storeOf(fields.err ?? error) } = fields;
      const counts = store && failed.get(store);
      if (counts) counts[message] = (counts[message] ?? 0) + 1;
      else log[level]({ ...fields, store, ...(error instanceof Error && { error: String(error) }) }, message);
      if (store && !counts) begin(store);
    };
  }

  function begin(store: Store): void {
    failed.set(store, {});
    setTimeout(tell, everyMs, store).unref();
  }

  function tell(store: Store): void {
    const counts = failed.get(store) ?? {};
    failed.delete(store);
    if (Object.keys(counts).length === 0) return;
    log.warn({ store, failed: counts }, `${NAMES[store]}: failures in the last minute, counted by log line`);
    begin(store);
  }

  return { debug: about('debug'), info: about('info'), warn: about('warn'), error: about('error') };
}

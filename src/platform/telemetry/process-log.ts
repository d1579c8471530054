import { isObject } from '../../lib/json.ts';
import { type Log, withFields } from '../../lib/log.ts';
import type { Store } from '../health.ts';

/** How much is buffered until it is written: less than pino writes at once. */
const MAX_BUFFERED_BYTES = 16 * 1024 - 1;
const FLUSH_AFTER_MS = 200;

/** A log with a method that writes its buffered lines at once. */
export interface FlushableLog extends Log {
  flush(): void;
}

/** Opens the log of a running process: JSON lines on standard output, or human-readable lines if that is a terminal. */
export async function pinoLog(level: string): Promise<FlushableLog> {
  const { default: pino } = await import('pino');
  const options = {
    level,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: {
      err: (error: unknown) => shownError(error instanceof Error ? pino.stdSerializers.err(error) : error),
    },
  };
  if (process.stdout.isTTY) {
    const { default: pretty } = await import('pino-pretty');
    const stream = pretty({ ignore: 'pid,hostname', translateTime: 'SYS:HH:MM:ss.l', singleLine: true });
    return { ...withFields(pino(options, stream), (fields) => fields), flush: () => undefined };
  }
  const destination = pino.destination({ dest: 1, sync: false, minLength: MAX_BUFFERED_BYTES });
  const flush = () => destination.flushSync();
  process.once('exit', flush);
  let isFlushing = false;
  const flushSoon = () => {
    isFlushing = false;
    destination.flush();
  };
  const written = withFields(pino(options, destination), (fields) => {
    // Without this, lines would wait until later ones fill the buffer.
    if (!isFlushing) setTimeout(flushSoon, FLUSH_AFTER_MS).unref();
    isFlushing = true;
    return fields;
  });
  return { ...written, flush };
}

/** The members of an error in a log line. Any other may hold what the error is about: a row, or a response. */
const SHOWN = ['type', 'message', 'stack', 'code', 'constraint', 'table'];

function shownError(error: unknown): unknown {
  if (!isObject(error)) return error;
  const shown = Object.entries(error).filter(([name]) => SHOWN.includes(name));
  const { aggregateErrors: all } = error;
  return { ...Object.fromEntries(shown), ...(Array.isArray(all) && { aggregateErrors: all.map(shownError) }) };
}

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

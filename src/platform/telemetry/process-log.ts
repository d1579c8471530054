import { isObject } from '../../lib/json.ts';
import type { Log } from '../../lib/log.ts';
import type { Store } from '../health.ts';

/** How many characters are gathered before they are written. */
const MAX_GATHERED = 16 * 1024;
const FLUSH_AFTER_MS = 200;
/** The most that waits for a slow reader, in bytes; further lines are lost. */
const MAX_WAITING_BYTES = 1024 * 1024;

/** A log with a method that writes its gathered lines at once. */
export interface FlushableLog extends Log {
  flush(): void;
}

/**
 * Opens the log of a running process: JSON lines on standard output, or human-readable lines if that is a terminal. A
 * line that cannot be written is lost: a closed pipe, a reader that does not read or a full disk does not stop the process.
 */
export async function pinoLog(level: string): Promise<FlushableLog> {
  const { default: pino } = await import('pino');
  let lines = '';
  const flush = () => {
    if (lines !== '' && process.stdout.writableLength < MAX_WAITING_BYTES) process.stdout.write(lines);
    lines = '';
  };
  const gathering = {
    write(line: string) {
      // Without this, a line would wait until enough others follow.
      if (lines === '') setTimeout(flush, FLUSH_AFTER_MS).unref();
      lines += line;
      if (lines.length >= MAX_GATHERED) flush();
    },
  };
  // Any other command ends when its output is closed.
  process.stdout.removeAllListeners('error').on('error', () => undefined);
  process.once('exit', flush);
  const options = {
    level,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: {
      err: (error: unknown) => shownError(error instanceof Error ? pino.stdSerializers.err(error) : error),
    },
  };
  const stream = process.stdout.isTTY
    ? (await import('pino-pretty')).default({
        ignore: 'pid,hostname',
        translateTime: 'SYS:HH:MM:ss.l',
        singleLine: true,
      })
    : gathering;
  return Object.assign(pino(options, stream), { flush });
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

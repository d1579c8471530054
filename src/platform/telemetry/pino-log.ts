import { isObject } from '../../lib/json.ts';
import { type Log, withFields } from '../../lib/log.ts';

/** How much is buffered until it is written: less than pino writes at once. */
const MAX_BUFFERED_BYTES = 16 * 1024 - 1;
const FLUSH_EVERY_MS = 200;

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
    return withFlush(pino(options, stream), () => undefined);
  }
  const destination = pino.destination({ dest: 1, sync: false, minLength: MAX_BUFFERED_BYTES });
  // Without this, lines would wait until later ones fill the buffer.
  setInterval(() => destination.flush(), FLUSH_EVERY_MS).unref();
  const flush = () => destination.flushSync();
  process.once('exit', flush);
  return withFlush(pino(options, destination), flush);
}

/** The members of an error in a log line. Any other may hold what the error is about: a row, or a response. */
const SHOWN = ['type', 'message', 'stack', 'code', 'constraint', 'table'];

function shownError(error: unknown): unknown {
  if (!isObject(error)) return error;
  const shown = Object.entries(error).filter(([name]) => SHOWN.includes(name));
  const { aggregateErrors: all } = error;
  return { ...Object.fromEntries(shown), ...(Array.isArray(all) && { aggregateErrors: all.map(shownError) }) };
}

function withFlush(logger: Log, flush: () => void): FlushableLog {
  return { ...withFields(logger, (fields) => fields), flush };
}

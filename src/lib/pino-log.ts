import { GatheredLines } from './gathered-lines.ts';
import type { Log } from './log.ts';

const FLUSH_EVERY_MS = 200;

/** A log and how to hand over what it still holds. */
export interface FlushableLog extends Log {
  flush(): void;
}

/** The log of a running service: pino's JSON lines on standard output, or readable lines where that is a terminal. */
export async function pinoLog(level: string): Promise<FlushableLog> {
  const { default: pino } = await import('pino');
  if (process.stdout.isTTY) {
    const { default: pretty } = await import('pino-pretty');
    const stream = pretty({ ignore: 'pid,hostname', translateTime: 'SYS:HH:MM:ss.l', singleLine: true });
    return withFlush(pino({ level }, stream), () => undefined);
  }
  const destination = pino.destination({ dest: 1, sync: false });
  const lines = new GatheredLines((text) => destination.write(text));
  // What is shorter than the buffer would wait for the next line.
  setInterval(() => lines.flush(), FLUSH_EVERY_MS).unref();
  const flush = () => {
    lines.flush();
    destination.flushSync();
  };
  process.once('exit', flush);
  return withFlush(pino({ level }, lines), flush);
}

function withFlush(logger: Log, flush: () => void): FlushableLog {
  return {
    debug: (fields, message) => logger.debug(fields, message),
    info: (fields, message) => logger.info(fields, message),
    warn: (fields, message) => logger.warn(fields, message),
    error: (fields, message) => logger.error(fields, message),
    flush,
  };
}

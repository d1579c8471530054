import { type Log, withFields } from '../../lib/log.ts';

/** How many characters are gathered until they are written. */
const GATHERED = 16 * 1024;
const FLUSH_EVERY_MS = 200;

/** A log with a method that writes its buffered lines at once. */
export interface FlushableLog extends Log {
  flush(): void;
}

/** Opens the log of a running process: JSON lines on standard output, or human-readable lines if that is a terminal. */
export async function pinoLog(level: string): Promise<FlushableLog> {
  const { default: pino } = await import('pino');
  if (process.stdout.isTTY) {
    const { default: pretty } = await import('pino-pretty');
    const stream = pretty({ ignore: 'pid,hostname', translateTime: 'SYS:HH:MM:ss.l', singleLine: true });
    return withFlush(pino({ level }, stream), () => undefined);
  }
  const destination = pino.destination({ dest: 1, sync: false });
  let lines = '';
  const hand = () => {
    if (lines !== '') destination.write(lines);
    lines = '';
  };
  // Gathered here, since a destination that gathers copies all that it holds for each line.
  const write = (line: string) => {
    lines += line;
    if (lines.length >= GATHERED) hand();
  };
  // Without this, lines would wait until later ones are enough.
  setInterval(hand, FLUSH_EVERY_MS).unref();
  const flush = () => {
    hand();
    destination.flushSync();
  };
  process.once('exit', flush);
  return withFlush(pino({ level }, { write }), flush);
}

function withFlush(logger: Log, flush: () => void): FlushableLog {
  return { ...withFields(logger, (fields) => fields), flush };
}

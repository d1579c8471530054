import { type Log, withFields } from '../../lib/log.ts';

const MAX_CHARACTERS = 64 * 1024;

/**
 * Gathers lines and hands them on many at a time. The destination of pino could do it, but looks at all that it has
 * gathered with each line: some ten kilobytes are copied for it.
 */
export class GatheredLines {
  readonly #write: (text: string) => void;
  #lines: string[] = [];
  #characters = 0;

  constructor(write: (text: string) => void) {
    this.#write = write;
  }

  /** Takes a line with its line feed; 64 Ki characters are handed on at once. */
  write(line: string): void {
    this.#lines.push(line);
    this.#characters += line.length;
    if (this.#characters >= MAX_CHARACTERS) this.flush();
  }

  /** Hands on what has come so far. */
  flush(): void {
    if (this.#lines.length === 0) return;
    const text = this.#lines.join('');
    this.#lines = [];
    this.#characters = 0;
    this.#write(text);
  }
}

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
  return { ...withFields(logger, (fields) => fields), flush };
}

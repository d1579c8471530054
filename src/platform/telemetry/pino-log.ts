import { type Log, withFields } from '../../lib/log.ts';

const MAX_CHARACTERS = 64 * 1024;

/**
 * A buffer that passes lines on many at a time. Pino's own destination can do so as well, but copies all that it has
 * buffered, some ten kilobytes, with each line.
 */
export class GatheredLines {
  readonly #write: (text: string) => void;
  #lines: string[] = [];
  #characters = 0;

  constructor(write: (text: string) => void) {
    this.#write = write;
  }

  /** Adds a line that ends with a line feed. Once the buffer has 64 Ki characters, they are passed on. */
  write(line: string): void {
    this.#lines.push(line);
    this.#characters += line.length;
    if (this.#characters >= MAX_CHARACTERS) this.flush();
  }

  /** Passes on all lines that are buffered. */
  flush(): void {
    if (this.#lines.length === 0) return;
    const text = this.#lines.join('');
    this.#lines = [];
    this.#characters = 0;
    this.#write(text);
  }
}

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
  const lines = new GatheredLines((text) => destination.write(text));
  // Without this, lines would wait until later ones fill the buffer.
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

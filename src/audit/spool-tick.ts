/** Stores lines: all of a call or, where it throws, none. */
interface LineSpool {
  append(...lines: string[]): void;
}

interface SpoolTickParts {
  spool: LineSpool;
  /** Called with each line that cannot be stored. */
  onLost(error: unknown, line: string): void;
  /** Called with what an `onStored` throws; without it that is an uncaught exception of the process. */
  onFault?(error: unknown): void;
}

/** More than this is written at once, before the tick has ended. */
const MAX_CHARACTERS = 1024 * 1024;

/**
 * Stores the lines of one tick of the event loop by one write: the write is the most expensive part of a record. A caller
 * whose line must be stored before something else happens waits for `onStored`.
 */
export class SpoolTick {
  readonly #parts: SpoolTickParts;
  #lines: string[] = [];
  #waiting: (() => void)[] = [];
  #characters = 0;
  #end: NodeJS.Immediate | undefined;

  constructor(parts: SpoolTickParts) {
    this.#parts = parts;
  }

  /**
   * Takes a line without a line feed. `onStored` is called once the line is in the spool, or was given to `onLost`; what
   * it throws neither keeps others from being called nor reaches whoever adds or commits.
   */
  add(line: string, onStored?: () => void): void {
    this.#lines.push(line);
    if (onStored) this.#waiting.push(onStored);
    this.#characters += line.length;
    if (this.#characters > MAX_CHARACTERS) this.commit();
    else this.#end ??= setImmediate(() => this.commit());
  }

  /** Stores what has come so far. */
  commit(): void {
    if (this.#end) clearImmediate(this.#end);
    this.#end = undefined;
    const [lines, waiting] = [this.#lines, this.#waiting];
    this.#lines = [];
    this.#waiting = [];
    this.#characters = 0;
    if (lines.length > 0) this.#store(lines);
    const { onFault = throwApart } = this.#parts;
    for (const onStored of waiting) {
      try {
        onStored();
      } catch (error) {
        onFault(error);
      }
    }
  }

  /** A line that cannot be stored takes no other with it. */
  #store(lines: readonly string[]): void {
    const { spool, onLost } = this.#parts;
    try {
      spool.append(...lines);
    } catch {
      for (const line of lines) {
        try {
          spool.append(line);
        } catch (error) {
          onLost(error, line);
        }
      }
    }
  }
}

function throwApart(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}

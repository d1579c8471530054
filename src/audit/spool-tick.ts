/** A store for lines, whose `append` stores all lines of a call or, when it throws, none. */
interface LineSpool {
  append(...lines: string[]): void;
}

interface SpoolTickParts {
  spool: LineSpool;
  /** Called with each line that cannot be stored, and the error. */
  onLost(error: unknown, line: string): void;
  /** Called with what an `onStored` callback throws. Without it, that is an uncaught exception of the process. */
  onFault?(error: unknown): void;
}

/** The number of characters above which lines are written at once, before the end of the tick. */
const MAX_CHARACTERS = 1024 * 1024;

/**
 * Collects the lines of one tick of the event loop and stores them by one write, which is the most expensive part of an
 * audit record. `onStored` tells a caller when its line is stored.
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
   * Adds a line without a line feed. Calls `onStored` once the line is in the spool or has been passed to `onLost`; an
   * error that it throws reaches neither the caller nor the other callbacks.
   */
  add(line: string, onStored?: () => void): void {
    this.#lines.push(line);
    if (onStored) this.#waiting.push(onStored);
    this.#characters += line.length;
    if (this.#characters > MAX_CHARACTERS) this.commit();
    else this.#end ??= setImmediate(() => this.commit());
  }

  /** Stores all lines added so far, and calls their callbacks. */
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

  /** Stores the lines by one write or, if that fails, one by one, so that a bad line affects no other. */
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

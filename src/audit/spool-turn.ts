/** Where lines are kept: all of a call or, where it throws, none. */
interface LineSpool {
  append(...lines: string[]): void;
}

interface SpoolTurnParts {
  spool: LineSpool;
  /** Told of each line that cannot be kept. */
  onLost(error: unknown, line: string): void;
  /** Told of what a `kept` throws; without it the process hears of it, as of anything that nobody caught. */
  onFault?(error: unknown): void;
}

/** More than this is written at once, before the turn has ended. */
const MAX_CHARACTERS = 1024 * 1024;

/**
 * Keeps what comes in one turn of the event loop by one write: a write is the dearest part of a record. Whoever needs
 * its line to be kept before something else happens waits for `kept`.
 */
export class SpoolTurn {
  readonly #parts: SpoolTurnParts;
  #lines: string[] = [];
  #waiting: (() => void)[] = [];
  #characters = 0;
  #end: NodeJS.Immediate | undefined;

  constructor(parts: SpoolTurnParts) {
    this.#parts = parts;
  }

  /**
   * Takes a line without a line feed. `kept` is called once it is in the spool, or has been told lost; what it throws
   * keeps no other from being called, and comes to nobody who adds or commits.
   */
  add(line: string, kept?: () => void): void {
    this.#lines.push(line);
    if (kept) this.#waiting.push(kept);
    this.#characters += line.length;
    if (this.#characters > MAX_CHARACTERS) this.commit();
    else this.#end ??= setImmediate(() => this.commit());
  }

  /** Keeps what has come so far. */
  commit(): void {
    if (this.#end) clearImmediate(this.#end);
    this.#end = undefined;
    const [lines, waiting] = [this.#lines, this.#waiting];
    this.#lines = [];
    this.#waiting = [];
    this.#characters = 0;
    if (lines.length > 0) this.#keep(lines);
    for (const kept of waiting) this.#tell(kept);
  }

  #tell(kept: () => void): void {
    const { onFault = throwApart } = this.#parts;
    try {
      kept();
    } catch (error) {
      onFault(error);
    }
  }

  /** One line that cannot be kept takes no other with it. */
  #keep(lines: readonly string[]): void {
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

/** A store for records, whose `append` stores all records of a call or, when it throws, none. */
interface RecordStore<Kept> {
  append(...records: Kept[]): void;
}

interface SpoolTickParts<Kept> {
  spool: RecordStore<Kept>;
  /** Called with each record that cannot be stored, and the error. */
  onLost(error: unknown, record: Kept): void;
  /** Called with what an `onStored` callback throws. Without it, that is an uncaught exception of the process. */
  onFault?(error: unknown): void;
}

/** The number of characters above which records are written at once, before the end of the tick. */
const MAX_CHARACTERS = 1024 * 1024;

/**
 * Collects the records of one tick of the event loop and stores them by one write, which is the most expensive part of
 * one. `onStored` tells a caller when its record is stored.
 */
export class SpoolTick<Kept extends { length: number }> {
  readonly #parts: SpoolTickParts<Kept>;
  #records: Kept[] = [];
  #waiting: (() => void)[] = [];
  #characters = 0;
  #end: NodeJS.Immediate | undefined;

  constructor(parts: SpoolTickParts<Kept>) {
    this.#parts = parts;
  }

  /**
   * Adds a record, whose `length` is in characters. Calls `onStored` once it is in the spool or has been passed to
   * `onLost`; an error that it throws reaches neither the caller nor the other callbacks.
   */
  add(record: Kept, onStored?: () => void): void {
    this.#records.push(record);
    if (onStored) this.#waiting.push(onStored);
    this.#characters += record.length;
    if (this.#characters > MAX_CHARACTERS) this.commit();
    else this.#end ??= setImmediate(() => this.commit());
  }

  /** Stores all records added so far, and calls their callbacks. */
  commit(): void {
    if (this.#end) clearImmediate(this.#end);
    this.#end = undefined;
    const [records, waiting] = [this.#records, this.#waiting];
    this.#records = [];
    this.#waiting = [];
    this.#characters = 0;
    if (records.length > 0) this.#store(records);
    const { onFault = throwApart } = this.#parts;
    for (const onStored of waiting) {
      try {
        onStored();
      } catch (error) {
        onFault(error);
      }
    }
  }

  /** Stores the records by one write or, if that fails, one by one, so that a bad record affects no other. */
  #store(records: readonly Kept[]): void {
    const { spool, onLost } = this.#parts;
    try {
      spool.append(...records);
    } catch {
      for (const record of records) {
        try {
          spool.append(record);
        } catch (error) {
          onLost(error, record);
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

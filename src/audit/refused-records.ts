import { randomUUID } from 'node:crypto';
import { appendFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { AuditSpool } from './spool.ts';

const GIVEN_UP_AFTER_MS = 10 * 60_000;
const FOLDER = 'refused';
const FILE = 'refused.ndjson';

/**
 * A refused audit record, as JSON, that waits for a retry: `since` when, in ms since 1970, and the `pass` that tried it
 * last.
 */
interface Entry {
  since: number;
  line: string;
  pass?: string;
}

/**
 * Stores audit records that the database refuses while it accepts others, in a separate spool where they hold up
 * nothing. A retry moves those that are ten minutes old to `refused.ndjson` in the folder of the audit spool.
 */
export class RefusedRecords {
  readonly #options;
  readonly #folder: string;
  /** The spool of refused records, opened with the first one, because most processes never have any. */
  #spool: AuditSpool | undefined;

  constructor(options: {
    /** The folder of the audit spool. */
    dir: string;
    nowMs(): number;
    /** Inserts one audit record into the database. */
    insert(line: string): Promise<void>;
    /** Checks whether the database accepts other audit records. */
    canInsertProbe(): Promise<boolean>;
    /** Called with a record that is given up: it was moved to `refused.ndjson`. */
    onGivenUp(error: unknown, line: string): void;
  }) {
    this.#options = options;
    this.#folder = join(options.dir, FOLDER);
  }

  /**
   * Adds a refused record; it is on the disk when this resolves.
   * @throws the spool's errors.
   */
  add(line: string): Promise<void> {
    return this.#keep({ since: this.#options.nowMs(), line });
  }

  /** Retries every refused record once, including those that dead processes left. */
  async retry(): Promise<void> {
    if (!existsSync(this.#folder)) return;
    const spool = this.#opened();
    const pass = randomUUID();
    const end = new AbortController();
    spool.adopt();
    await spool.drain(
      async ([text]) => {
        const entry: Entry = JSON.parse(String(text));
        if (entry.pass === pass) end.abort();
        // Appended again before the spool removes it.
        if (entry.pass === pass || !(await this.#isSettled(entry))) await this.#keep({ ...entry, pass });
      },
      { batchSize: 1, signal: end.signal },
    );
  }

  #keep(entry: Entry): Promise<void> {
    const spool = this.#opened();
    spool.append(JSON.stringify(entry));
    return spool.sync();
  }

  #opened(): AuditSpool {
    this.#spool ??= AuditSpool.open({ dir: this.#folder, isSynced: true });
    return this.#spool;
  }

  /** Tries to insert a record, and returns whether it is settled: inserted, or given up and moved to the file. */
  async #isSettled({ since, line }: Entry): Promise<boolean> {
    const { dir, nowMs, insert, canInsertProbe, onGivenUp } = this.#options;
    try {
      await insert(line);
    } catch (error) {
      if (nowMs() - since < GIVEN_UP_AFTER_MS || !(await canInsertProbe())) return false;
      appendFileSync(join(dir, FILE), `${line}\n`, { mode: 0o600, flush: true });
      onGivenUp(error, line);
    }
    return true;
  }

  /** Closes the spool; remaining records wait for the next process. */
  close(): void {
    this.#spool?.close();
  }
}

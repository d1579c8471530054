import { randomUUID } from 'node:crypto';
import { appendFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { AuditSpool } from './spool.ts';

const RETRY_MS = 60_000;
const GIVEN_UP_AFTER_MS = 10 * 60_000;
const FOLDER = 'refused';
const FILE = 'refused.ndjson';

/** A record that waits: since when, and by which pass over all of them it was tried last. */
interface Entry {
  since: number;
  line: string;
  pass?: string;
}

interface RefusedRecordsOptions {
  /** The spool's folder. */
  dir: string;
  nowMs(): number;
  /** Writes a record. */
  insert(line: string): Promise<void>;
  /** Whether the store takes other records. */
  takesOthers(): Promise<boolean>;
  /** Called with a record that went to the file. */
  onGivenUp(error: unknown, line: string): void;
  /** Called with the error of an attempt that could not be made. */
  onError(error: unknown): void;
}

/**
 * Records that the store refuses while it takes others: they stand in nobody's way in a spool of their own, are tried again
 * once a minute, and go to `refused.ndjson` beside the spool where ten minutes have not helped.
 */
export class RefusedRecords {
  readonly #options: RefusedRecordsOptions;
  readonly #folder: string;
  /** Opened with the first record: most instances have none. */
  #spool: AuditSpool | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: RefusedRecordsOptions) {
    this.#options = options;
    this.#folder = join(options.dir, FOLDER);
  }

  /** Tries again once a minute. */
  start(): void {
    this.#timer = setInterval(() => {
      this.retry().catch((error: unknown) => this.#options.onError(error));
    }, RETRY_MS);
  }

  /** Sets a record aside: it is stored when this returns. Throws the spool's errors. */
  add(line: string): void {
    this.#keep({ since: this.#options.nowMs(), line });
  }

  /** Tries all of them once, also what dead processes left. */
  async retry(): Promise<void> {
    if (!existsSync(this.#folder)) return;
    const spool = this.#opened();
    const pass = randomUUID();
    const end = new AbortController();
    spool.adopt();
    await spool.drain(
      async ([text = '']) => {
        const entry: Entry = JSON.parse(text);
        if (entry.pass === pass) end.abort();
        // Kept again before the spool lets go of it.
        if (entry.pass === pass || !(await this.#isSettled(entry))) this.#keep({ ...entry, pass });
      },
      { batchSize: 1, signal: end.signal },
    );
  }

  #keep(entry: Entry): void {
    this.#opened().append(JSON.stringify(entry));
  }

  #opened(): AuditSpool {
    this.#spool ??= AuditSpool.open({ dir: this.#folder });
    return this.#spool;
  }

  /** Whether a record is written, or has gone to the file. */
  async #isSettled({ since, line }: Entry): Promise<boolean> {
    const { dir, nowMs, insert, takesOthers, onGivenUp } = this.#options;
    try {
      await insert(line);
    } catch (error) {
      if (nowMs() - since < GIVEN_UP_AFTER_MS || !(await takesOthers())) return false;
      appendFileSync(join(dir, FILE), `${line}\n`, { mode: 0o600 });
      onGivenUp(error, line);
    }
    return true;
  }

  /** Lets go of the folder; what is left waits for the next process. */
  close(): void {
    clearInterval(this.#timer);
    this.#spool?.close();
  }
}

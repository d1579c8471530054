import { randomUUID } from 'node:crypto';
import { backoffMs } from '../lib/backoff.ts';
import { withTimeout } from '../lib/with-timeout.ts';
import type { Db } from '../platform/database/database.ts';
import { sqlState } from '../platform/database/sql-state.ts';
import { outsideRequest } from '../platform/database/tenant-db.ts';
import type { AuditSpool } from './spool.ts';

/** Called with a record that the database refuses. */
type OnRefused = (error: unknown, line: string) => void;

interface Refusal {
  error: unknown;
  line: string;
}

/** Where spooled records go. */
export class AuditStore {
  readonly #db: Db;
  readonly #door: ReturnType<Db['unscoped']>;

  constructor(db: Db) {
    this.#db = db;
    this.#door = db.unscoped('an audit record can belong to no node');
  }

  /** Writes spooled records to `audit_records`, all or none; one that is there already changes nothing. */
  async insertAll(lines: readonly string[]): Promise<void> {
    const records = `[${lines.join(',')}]`;
    // The timer that it runs by may be of a request.
    await outsideRequest(() =>
      this.#door.raw(
        (sql) => sql`
          insert into audit_records
          select * from json_populate_recordset(null::audit_records, ${records}::json)
          on conflict do nothing`,
      ),
    );
  }

  /** Whether the table takes records at all: tries one, and takes it back. */
  async takesOthers(): Promise<boolean> {
    try {
      await outsideRequest(() =>
        this.#db.transaction(async () => {
          await this.insertAll([probe()]);
          throw new TakenBack();
        }),
      );
    } catch (error) {
      return error instanceof TakenBack;
    }
    return false;
  }

  /**
   * Writes records. Of those that are refused while others are taken, `onBadValue` is called with the ones that no repeat
   * would mend, and `onRefused` with the rest.
   * @throws the database's error where it takes none.
   */
  async insert(lines: readonly string[], onBadValue: OnRefused, onRefused: OnRefused): Promise<void> {
    for (const { error, line } of await this.#refusals(lines)) {
      if (isBadValue(error)) onBadValue(error, line);
      else onRefused(error, line);
    }
  }

  /** Halves what is refused until it is known which records they are: the others are written. */
  async #refusals(lines: readonly string[]): Promise<Refusal[]> {
    try {
      await this.insertAll(lines);
      return [];
    } catch (error) {
      const [line = ''] = lines;
      if (!isBadValue(error) && (sqlState(error) === undefined || !(await this.takesOthers()))) throw error;
      if (lines.length <= 1) return this.#refusalOfOne(line, error);
      const half = Math.ceil(lines.length / 2);
      return [...(await this.#refusals(lines.slice(0, half))), ...(await this.#refusals(lines.slice(half)))];
    }
  }

  /** What ended while it was tried may have refused it, and no fault of its own: it is tried once more now that others are taken. */
  async #refusalOfOne(line: string, error: unknown): Promise<Refusal[]> {
    if (isBadValue(error)) return [{ error, line }];
    try {
      await this.insertAll([line]);
      return [];
    } catch (again) {
      return [{ error: again, line }];
    }
  }
}

class TakenBack extends Error {
  override readonly name = 'TakenBack';
}

function probe(): string {
  const texts = { correlation_id: '', method: '', path: '', remote_address: '', real_ip: '' };
  const numbers = { status_code: 0, elapsed: 0, request_bytes: 0, response_bytes: 0 };
  const at = new Date().toISOString();
  return JSON.stringify({ at, id: randomUUID(), ...texts, ...numbers, headers: {}, is_api: false, aborted: false });
}

/** SQLSTATE classes 22 and 23: no repeat would mend it. */
function isBadValue(error: unknown): boolean {
  return /^2[23]/.test(sqlState(error) ?? '');
}

/** While the database is up, a record is written at most this long after its request has ended. */
export const AUDIT_DELAY_MS = 1_000;

export type AuditWriterOptions = {
  spool: AuditSpool;
  /** Writes the lines, all or none; must bear the same line twice, by its (time, id). */
  insert: (lines: string[]) => Promise<void>;
  /** Called once for each outage, with its first error. */
  onError: (error: unknown) => void;
  intervalMs?: number;
  batchSize?: number;
  /** How often what dead processes left is looked for. */
  adoptIntervalMs?: number;
  minBackoffMs?: number;
  maxBackoffMs?: number;
};

/**
 * Moves lines from the spool to their store: at most `intervalMs` after they came, or at once by a full batch. As long as
 * the spool is full it looks as often for room.
 */
export class AuditWriter {
  readonly #options: Required<AuditWriterOptions>;
  readonly #abort = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #adoptTimer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #failures = 0;

  constructor(options: AuditWriterOptions) {
    const defaults = {
      intervalMs: 200,
      batchSize: 500,
      adoptIntervalMs: 30_000,
      minBackoffMs: 100,
      maxBackoffMs: 5_000,
    };
    this.#options = { ...defaults, ...options };
  }

  /** Whether the store refused the last batch. */
  get isFailing(): boolean {
    return this.#failures > 0;
  }

  /** Begins with what is in the spool already. */
  start(): void {
    const { spool, adoptIntervalMs } = this.#options;
    spool.onAppend(() => this.#appended());
    this.#adoptTimer = setInterval(() => this.#adopt(), adoptIntervalMs);
    this.#run();
  }

  /** Resolves once what is in the spool has been written, or could not be. */
  async flush(): Promise<void> {
    await this.#running;
    if (this.#running === undefined) this.#run();
    await this.#running;
  }

  /**
   * Ends the loop with a last attempt to write everything. True when the spool is empty within `deadlineMs`; what is
   * left stays in the spool.
   */
  async stop(deadlineMs: number): Promise<boolean> {
    const { spool } = this.#options;
    clearInterval(this.#adoptTimer);
    this.#clearTimer();
    spool.onAppend(() => {});
    // What cannot be written in time stays in the spool.
    await withTimeout(this.#lastDrain(), deadlineMs).catch(() => undefined);
    this.#abort.abort();
    this.#clearTimer();
    return spool.pendingBytes === 0;
  }

  async #lastDrain(): Promise<void> {
    await this.#running;
    this.#clearTimer();
    await this.#drain();
  }

  #appended(): void {
    // During a run or a backoff the line is taken by the next run.
    if (this.#running !== undefined || this.#failures > 0) return;
    if (this.#options.spool.pendingLines >= this.#options.batchSize) this.#run();
    else if (this.#timer === undefined) this.#runIn(this.#options.intervalMs);
  }

  #adopt(): void {
    try {
      if (this.#options.spool.adopt() > 0 && this.#running === undefined && this.#failures === 0) this.#run();
    } catch (error) {
      this.#options.onError(error);
    }
  }

  #run(): void {
    this.#clearTimer();
    this.#running = this.#drain().then(() => {
      this.#running = undefined;
      const { spool, intervalMs, minBackoffMs, maxBackoffMs } = this.#options;
      if (this.#abort.signal.aborted) return;
      if (this.#failures > 0) this.#runIn(backoffMs(this.#failures, { minMs: minBackoffMs, maxMs: maxBackoffMs }));
      else if (spool.pendingBytes > 0 || spool.isFull) this.#runIn(intervalMs);
    });
  }

  async #drain(): Promise<void> {
    const { spool, insert, batchSize, onError } = this.#options;
    try {
      await spool.drain(insert, { batchSize, signal: this.#abort.signal });
      this.#failures = 0;
    } catch (error) {
      this.#failures += 1;
      if (this.#failures === 1) onError(error);
    }
  }

  #runIn(delayMs: number): void {
    this.#timer = setTimeout(() => this.#run(), delayMs);
  }

  #clearTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

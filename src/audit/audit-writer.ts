import { randomUUID } from 'node:crypto';
import { withTimeout } from '../lib/with-timeout.ts';
import { WorkLoop } from '../lib/work-loop.ts';
import type { Db } from '../platform/database/database.ts';
import { isRefusedValue, sqlState, UNIQUE_VIOLATION } from '../platform/errors.ts';
import { outsideRequest } from '../platform/held-memory.ts';
import { AUDIT_COLUMNS, isChainedLine, jsonOf } from './audit-record.ts';
import type { AuditSpool } from './spool.ts';

/** Called with the spooled line of an audit record that the database refuses, and its error. */
type OnRefused = (error: unknown, line: Buffer) => void | Promise<void>;

/** Inserts spooled audit records into the database. */
export class AuditStore {
  readonly #db: Db;
  readonly #unscoped: ReturnType<Db['unscoped']>;

  constructor(db: Db) {
    this.#db = db;
    this.#unscoped = db.unscoped('audit records may have no node');
  }

  /**
   * Inserts lines of the spool into `audit_records`: all or none. Records already stored are skipped. Lines are copied
   * as they are, so that the database parses no JSON; only a batch with lines of another form, or with records already
   * stored, is inserted as JSON.
   */
  async insertAll(lines: readonly Buffer[]): Promise<void> {
    // The timer that calls this may have been set within a request, whose transaction must not be used.
    await outsideRequest(async () => {
      if (!lines.every(isChainedLine)) return this.#insertJson(lines.map(jsonOf));
      try {
        await this.#unscoped.copy('audit_records', AUDIT_COLUMNS, lines);
      } catch (error) {
        if (sqlState(error) !== UNIQUE_VIOLATION) throw error;
        await this.#insertJson(lines.map(jsonOf));
      }
    });
  }

  async #insertJson(records: readonly string[]): Promise<void> {
    const json = `[${records.join(',')}]`;
    const columns = AUDIT_COLUMNS.join(', ');
    await this.#unscoped.raw(
      (sql) => sql`
        insert into audit_records (${sql.raw(columns)})
        select ${sql.raw(columns)} from json_populate_recordset(null::audit_records, ${json}::json)
        on conflict do nothing`,
    );
  }

  /** Checks whether the table accepts records at all, by inserting a test record and rolling it back. */
  async canInsertProbe(): Promise<boolean> {
    try {
      await outsideRequest(() =>
        this.#db.transaction(async () => {
          await this.#insertJson([probe()]);
          throw new RollbackProbe();
        }),
      );
    } catch (error) {
      return error instanceof RollbackProbe;
    }
    return false;
  }

  /**
   * Inserts records. Of records refused while the table accepts others, calls `onBadValue` for those that no retry can
   * insert and `onRefused` for the rest; before it inserts any record behind one of them, it awaits `onGap`.
   * @throws the database's error when the table accepts no record at all.
   */
  async insert(
    lines: readonly Buffer[],
    onBadValue: OnRefused,
    onRefused: OnRefused,
    onGap: (line: Buffer) => Promise<void> = () => Promise.resolve(),
  ): Promise<void> {
    const refusals = await this.#refusals(lines, onGap);
    for (const { error, line } of refusals) await (isRefusedValue(error) ? onBadValue : onRefused)(error, line);
  }

  /**
   * Inserts the records, halving refused batches until the refused records are known, and returns those. A single one is
   * tried twice, because a temporary failure may have refused it: one that waited while the partition of its month was
   * made is refused as a bad value by the default partition.
   */
  async #refusals(
    lines: readonly Buffer[],
    onGap: (line: Buffer) => Promise<void>,
  ): Promise<{ error: unknown; line: Buffer }[]> {
    try {
      await this.insertAll(lines);
      return [];
    } catch (error) {
      if (!isRefusedValue(error) && (sqlState(error) === undefined || !(await this.canInsertProbe()))) throw error;
    }
    if (lines.length <= 1) {
      const [line = Buffer.alloc(0)] = lines;
      const refusal = await this.insertAll(lines).then(
        () => undefined,
        (error: unknown) => ({ error, line }),
      );
      if (!refusal) return [];
      await onGap(line);
      return [refusal];
    }
    const half = Math.ceil(lines.length / 2);
    const first = await this.#refusals(lines.slice(0, half), onGap);
    return [...first, ...(await this.#refusals(lines.slice(half), onGap))];
  }
}

class RollbackProbe extends Error {
  override readonly name = 'RollbackProbe';
}

function probe(): string {
  const texts = { correlation_id: '', method: '', path: '', remote_address: '', real_ip: '' };
  const numbers = { status_code: 0, elapsed: 0, request_bytes: 0, response_bytes: 0 };
  const at = new Date().toISOString();
  return JSON.stringify({ at, id: randomUUID(), ...texts, ...numbers, headers: {}, is_api: false, aborted: false });
}

/**
 * The longest time from the end of a request until its audit record is in the database, in ms, unless the database is
 * down.
 */
export const AUDIT_DELAY_MS = 1_000;

export type AuditWriterOptions = {
  spool: AuditSpool;
  /** Writes lines to the database. Must accept lines that were written before (same time and id). */
  insert: (lines: Buffer[]) => Promise<void>;
  /** Called once for each outage of the database, with its first error. */
  onError: (error: unknown) => void;
  intervalMs?: number;
  batchSize?: number;
  /** The interval at which segments of dead processes are looked for, in ms. */
  adoptIntervalMs?: number;
};

/**
 * Moves lines from the spool to the database within `intervalMs` of their arrival, or at once when a batch is full.
 * While the spool is full, it also checks at that interval whether the disk has free space again.
 */
export class AuditWriter {
  readonly #options: Required<AuditWriterOptions>;
  readonly #loop: WorkLoop;
  readonly #end = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #adoptedTick = performance.now();
  /** Whether the last attempt to write a batch failed. */
  isFailing = false;

  constructor(options: AuditWriterOptions) {
    this.#options = { intervalMs: 200, batchSize: 500, adoptIntervalMs: 30_000, ...options };
    const { onError, adoptIntervalMs } = this.#options;
    const iterate = (signal: AbortSignal) => this.#iterate(signal);
    this.#loop = new WorkLoop({ iterate, onFailure: onError, pollMs: adoptIntervalMs });
  }

  /** Starts to write, with the lines that the spool already holds. */
  start(): void {
    this.#options.spool.onAppend(() => this.#appended());
    this.#loop.start();
  }

  /** Tries to write all lines of the spool, and resolves when that has succeeded or failed. */
  async flush(): Promise<void> {
    await this.#write(this.#end.signal).catch(() => undefined);
  }

  /**
   * Stops after a last attempt, of at most `deadlineMs`, to write everything. Returns whether the spool is empty now;
   * otherwise the remaining lines stay in it.
   */
  async stop(deadlineMs: number): Promise<boolean> {
    const { spool } = this.#options;
    spool.onAppend(() => {});
    const written = this.#loop.stop().then(() => this.#write(this.#end.signal));
    await withTimeout(written, deadlineMs).catch(() => undefined);
    this.#end.abort();
    clearTimeout(this.#timer);
    return spool.pendingBytes === 0;
  }

  #appended(): void {
    if (this.#options.spool.pendingLines >= this.#options.batchSize) this.#loop.notify();
    else this.#runLater();
  }

  async #iterate(signal: AbortSignal): Promise<boolean> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#adoptSegments();
    await this.#write(signal);
    const { spool } = this.#options;
    if (!signal.aborted && (spool.pendingBytes > 0 || spool.isFull)) this.#runLater();
    return false;
  }

  #adoptSegments(): void {
    const { spool, adoptIntervalMs, onError } = this.#options;
    if (performance.now() - this.#adoptedTick < adoptIntervalMs) return;
    this.#adoptedTick = performance.now();
    try {
      spool.adopt();
    } catch (error) {
      onError(error);
    }
  }

  async #write(signal: AbortSignal): Promise<void> {
    const { spool, insert, batchSize } = this.#options;
    try {
      await spool.drain(insert, { batchSize, signal });
      this.isFailing = false;
    } catch (error) {
      this.isFailing = true;
      throw error;
    }
  }

  #runLater(): void {
    this.#timer ??= setTimeout(() => this.#loop.notify(), this.#options.intervalMs);
  }
}

import type { Log } from '../../lib/log.ts';
import type { Db } from '../../platform/database/database.ts';
import { CsvRecords, type FileRow, fileRowOf } from './csv.rules.ts';
import { MAX_BULK_ROWS } from './migration.input.ts';
import {
  FILE_CHUNK_BYTES,
  LEASE_MS,
  type MigrationJobRow,
  MigrationStore,
  type RowOutcomeRow,
} from './migration-store.ts';
import { faultRowOf, outcomeRowOf, RowApplication } from './row-application.ts';

/** A row batch: consecutive rows of a file. */
export interface RowBatch {
  /** The positions in the file, in bytes, of this batch and of the next one. */
  from: number;
  to: number;
  rows: FileRow[];
  /** The index of the first row after the batch. */
  nextIndex: number;
  isLast: boolean;
}

/** The number of bytes read after which a batch is complete, even with few rows or none. */
const MAX_BATCH_BYTES = 512 * 1024;

/** Reads a job's file in row batches, starting at the job's position. It holds at most two chunks. */
export class RowBatches {
  readonly #store: MigrationStore;
  readonly #job: MigrationJobRow;
  readonly #columns: readonly string[];
  readonly #records: CsvRecords;
  #nextIndex: number;
  #seq: number;
  /** The number of bytes to skip in the next chunk, because they are before the job's position. */
  #passed: number;
  #isEnded = false;

  constructor(store: MigrationStore, job: MigrationJobRow) {
    const position = Number(job.byte_position);
    this.#store = store;
    this.#job = job;
    this.#columns = job.columns.split(',');
    this.#records = new CsvRecords(position, this.#columns);
    this.#nextIndex = job.next_index;
    this.#seq = Math.floor(position / FILE_CHUNK_BYTES);
    this.#passed = position % FILE_CHUNK_BYTES;
  }

  /**
   * Reads the next batch, which may have no rows: at the end of the file, or if it is full of empty lines. The promise
   * may be awaited later, after the previous batch is applied: a rejection before then is not reported as unhandled.
   */
  read(): Promise<RowBatch> {
    const batch = this.#read();
    batch.catch(() => undefined);
    return batch;
  }

  async #read(): Promise<RowBatch> {
    const from = this.#records.position;
    const rows: FileRow[] = [];
    for (;;) {
      const isFull = rows.length === MAX_BULK_ROWS || this.#records.position - from >= MAX_BATCH_BYTES;
      if (isFull) return this.#batch(from, rows, false);
      const record = this.#records.take();
      if (record) {
        rows.push(fileRowOf(record, this.#columns, this.#nextIndex));
        this.#nextIndex += 1;
      } else if (this.#isEnded) return this.#batch(from, rows, true);
      else await this.#readChunk();
    }
  }

  #batch(from: number, rows: FileRow[], isLast: boolean): RowBatch {
    return { from, to: this.#records.position, rows, nextIndex: this.#nextIndex, isLast };
  }

  async #readChunk(): Promise<void> {
    const chunk = await this.#store.chunk(this.#job.node_id, this.#job.migration_id, this.#seq);
    if (!chunk) {
      this.#isEnded = true;
      this.#records.end();
      return;
    }
    this.#records.push(chunk.subarray(this.#passed));
    this.#passed = 0;
    this.#seq += 1;
  }
}

/**
 * The bytes that PostgreSQL needs for a failed row beside its texts, as measured: 79 in the table and 41 in the index.
 */
export const FAILED_ROW_BYTES = 120;
/**
 * The bytes that the failed rows of any file may take, however small it is, so that all rows of a small file are
 * recorded. Rows without an identifier count as failed here: a line may be as short.
 */
const FREE_BYTES = 1_000_000;
/**
 * The bytes that failed rows may take for each byte read. Only failing lines shorter than 24 bytes take more (28 if
 * they contain U+0000, which is stored as three bytes).
 */
const STORED_PER_READ = 10;

/** Returns the number of bytes that it takes to store those of these rows that failed or have no identifier. */
export function failedBytesOf(records: readonly RowOutcomeRow[]): number {
  const failed = records.filter(
    ({ status, reason }) => status === 'failed' || reason === 'missing_email_and_external_id',
  );
  const texts = failed.map(({ email, external_id, reason }) => `${email ?? ''}${external_id ?? ''}${reason ?? ''}`);
  return failed.length * FAILED_ROW_BYTES + Buffer.byteLength(texts.join(''));
}

/** Checks whether the failed rows of a file take more bytes than are allowed for the bytes read of it. */
export function isTooMuch(failedBytes: number, readBytes: number): boolean {
  return failedBytes > Math.max(FREE_BYTES, STORED_PER_READ * readBytes);
}

/**
 * Returns the outcome of the row at which a migration ends because its failed rows take too many bytes. Neither this
 * row nor any later one was applied.
 */
export function endRowOf(index: number): RowOutcomeRow {
  const why = `its failed rows and those without an identifier would take more than ${STORED_PER_READ} times the bytes read of the file`;
  const fault = `line ${index}: the migration has ended here: ${why}`;
  return faultRowOf({ index, fault, email: undefined, externalId: undefined });
}

/**
 * The outcome of a batch. `applied`: its rows are applied. `finished`: they were the last ones. `overfull`: the
 * migration failed before them, because its failed rows would take too many bytes. `taken`: another process has the
 * job, or it has ended. `moved`: the job is at another position.
 */
type BatchOutcome = 'applied' | 'finished' | 'overfull' | 'taken' | 'moved';

interface MigrationBatchesDependencies {
  db: Db;
  log: Log;
  nowMs(): number;
}

/** Thrown to roll back a batch after which the failed rows of its file would take too many bytes. */
class OverfullError extends Error {}

/**
 * Applies row batches of files. The users, events, row outcomes and the job's progress are written in one transaction.
 */
export class MigrationBatches {
  readonly #deps: MigrationBatchesDependencies;
  readonly #store: MigrationStore;
  readonly #application: RowApplication;

  constructor(deps: MigrationBatchesDependencies) {
    this.#deps = deps;
    this.#store = new MigrationStore(deps.db);
    this.#application = new RowApplication(deps.db, deps.log);
  }

  /** Applies a batch, unless the job is at another position or not leased by this owner. */
  async apply(claimed: MigrationJobRow, batch: RowBatch, owner: string): Promise<BatchOutcome> {
    try {
      return await this.#inJob(claimed, batch, owner, (job, atMs) => this.#applyBatch(job, batch, atMs));
    } catch (error) {
      if (!(error instanceof OverfullError)) throw error;
      return await this.#inJob(claimed, batch, owner, (job, atMs) => this.#endBefore(job, batch, atMs));
    }
  }

  #inJob(
    { node_id: nodeId, migration_id: id }: MigrationJobRow,
    { from }: RowBatch,
    owner: string,
    work: (job: MigrationJobRow, atMs: number) => Promise<BatchOutcome>,
  ): Promise<BatchOutcome> {
    return this.#deps.db.transaction(async () => {
      const job = await this.#store.lock(nodeId, id, false);
      if (job?.lease_owner !== owner) return 'taken';
      if (Number(job.byte_position) !== from) return 'moved';
      return work(job, this.#deps.nowMs());
    });
  }

  async #applyBatch(job: MigrationJobRow, batch: RowBatch, atMs: number): Promise<BatchOutcome> {
    const records = await this.#applyRows(job, batch, atMs);
    if (isTooMuch(Number(job.failed_bytes) + failedBytesOf(records), batch.to)) throw new OverfullError();
    await this.#record(job, records, batch, atMs);
    if (!batch.isLast) return 'applied';
    await this.#store.finish(job, 'done', atMs);
    return 'finished';
  }

  async #endBefore(job: MigrationJobRow, batch: RowBatch, atMs: number): Promise<BatchOutcome> {
    await this.#record(job, [endRowOf(job.next_index)], batch, atMs);
    await this.#store.finish(job, 'failed', atMs);
    return 'overfull';
  }

  async #record(
    job: MigrationJobRow,
    records: readonly RowOutcomeRow[],
    { to, nextIndex }: RowBatch,
    atMs: number,
  ): Promise<void> {
    if (records.length > 0) await this.#store.recordRows(job.node_id, job.migration_id, records);
    const count = (status: string) => records.filter((record) => record.status === status).length;
    await this.#store.step(job, {
      position: to,
      nextIndex,
      success: count('created'),
      skipped: count('skipped'),
      failed: count('failed'),
      failedBytes: Number(job.failed_bytes) + failedBytesOf(records),
      leaseUntilMs: atMs + LEASE_MS,
    });
  }

  async #applyRows(job: MigrationJobRow, { rows }: RowBatch, atMs: number): Promise<RowOutcomeRow[]> {
    const sound = rows.filter((row) => row.fault === undefined);
    const faulty = rows.filter((row) => row.fault !== undefined).map(faultRowOf);
    if (sound.length === 0) return faulty;
    const applied = await this.#application.apply({
      nodeId: job.node_id,
      correlationId: job.correlation_id,
      rows: sound.map(({ input }) => input),
      mayFail: true,
      atMs,
      numberOf: (row) => sound[row]?.index ?? 0,
    });
    return [...applied.map((row, at) => outcomeRowOf(row, sound[at]?.index ?? 0)), ...faulty];
  }
}

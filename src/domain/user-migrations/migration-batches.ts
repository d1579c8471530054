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

/** The next rows of a file. */
export interface RowBatch {
  /** Where its first row begins, and where the next batch does. */
  from: number;
  to: number;
  rows: FileRow[];
  /** The index of the row after it. */
  nextIndex: number;
  isLast: boolean;
}

/** Rows of long records are fewer. */
const MAX_BATCH_BYTES = 512 * 1024;

/** Reads the file of a job in batches, from where the job is on. It holds two chunks at most. */
export class RowBatches {
  readonly #store: MigrationStore;
  readonly #job: MigrationJobRow;
  readonly #columns: readonly string[];
  readonly #records: CsvRecords;
  #nextIndex: number;
  #seq: number;
  /** What of the next chunk lies before the job's position. */
  #passed: number;
  #isEnded = false;

  constructor(store: MigrationStore, job: MigrationJobRow) {
    const position = Number(job.byte_position);
    this.#store = store;
    this.#job = job;
    this.#columns = job.columns.split(',');
    this.#records = new CsvRecords(position, this.#columns.length);
    this.#nextIndex = job.next_index;
    this.#seq = Math.floor(position / FILE_CHUNK_BYTES);
    this.#passed = position % FILE_CHUNK_BYTES;
  }

  /**
   * Reads the next batch; without rows only where the file has no more. It may be awaited late, after the batch before it
   * is applied: until then a failure is nobody's.
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
      const record = this.#records.take();
      if (record) {
        rows.push(fileRowOf(record, this.#columns, this.#nextIndex));
        this.#nextIndex += 1;
        const isFull = rows.length === MAX_BULK_ROWS || this.#records.position - from >= MAX_BATCH_BYTES;
        if (isFull) return this.#batch(from, rows, false);
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
 * What PostgreSQL stores of a failed row beside its texts: 79 bytes in the table (header, both ids, index, status, how
 * long the texts are) and 41 in the index, as measured.
 */
export const FAILED_ROW_BYTES = 120;
/** The failed rows of a file may take so much whatever its size, so that a small one is told of to its end. */
const FREE_BYTES = 1_000_000;
/** A line that takes more by failing has fewer than 24 bytes, or 28 where U+0000 identifies it: each is kept as three. */
const STORED_PER_READ = 10;

/** What storing the failed ones among these rows takes, in bytes. */
export function failedBytesOf(records: readonly RowOutcomeRow[]): number {
  const failed = records.filter(({ status }) => status === 'failed');
  const texts = failed.map(({ email, external_id, reason }) => `${email ?? ''}${external_id ?? ''}${reason ?? ''}`);
  return failed.length * FAILED_ROW_BYTES + Buffer.byteLength(texts.join(''));
}

/** Whether the failed rows of a file take more room than so many bytes read of it may make. */
export function isTooMuch(failedBytes: number, readBytes: number): boolean {
  return failedBytes > Math.max(FREE_BYTES, STORED_PER_READ * readBytes);
}

/** The row at which a migration ends for that: neither it nor what follows was applied. */
export function endRowOf(index: number): RowOutcomeRow {
  const why = `its failed rows would take more than ${STORED_PER_READ} times the bytes read of the file`;
  const fault = `line ${index}: the migration has ended here: ${why}`;
  return faultRowOf({ index, fault, email: undefined, externalId: undefined });
}

/**
 * What became of a batch: its rows are applied; these were the last ones; the migration has failed before them, since its
 * failed rows would take too much room; others work at the job, or have brought it elsewhere, or to its end.
 */
type BatchOutcome = 'applied' | 'finished' | 'overfull' | 'taken' | 'moved';

interface MigrationBatchesParts {
  db: Db;
  log: Log;
  nowMs(): number;
}

/** Undoes a batch after which the failed rows of its file would take too much room. */
class OverfullError extends Error {}

/** Applies batches of files: users, events, the record of each row and how far the job is, all in one transaction. */
export class MigrationBatches {
  readonly #parts: MigrationBatchesParts;
  readonly #store: MigrationStore;
  readonly #application: RowApplication;

  constructor(parts: MigrationBatchesParts) {
    this.#parts = parts;
    this.#store = new MigrationStore(parts.db);
    this.#application = new RowApplication(parts.db, parts.log);
  }

  /** Applies a batch, unless the job is not where the batch begins or not this owner's. */
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
    return this.#parts.db.transaction(async () => {
      const job = await this.#store.lockFree(nodeId, id);
      if (job?.lease_owner !== owner) return 'taken';
      if (Number(job.byte_position) !== from) return 'moved';
      return work(job, this.#parts.nowMs());
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

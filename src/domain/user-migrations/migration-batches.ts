import type { Log } from '../../lib/log.ts';
import type { Db } from '../../platform/database/database.ts';
import { LEASE_MS, type MigrationJobRow, MigrationJobStore } from './migration-job-store.ts';
import type { RowBatch } from './migration-jobs.ts';
import { MigrationStore, type RowOutcomeRow } from './migration-store.ts';
import { faultRowOf, outcomeRowOf, RowApplication } from './row-application.ts';

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
  return failed.reduce(
    (sum, { email, external_id: externalId, reason }) =>
      sum + FAILED_ROW_BYTES + bytesOf(email) + bytesOf(externalId) + bytesOf(reason),
    0,
  );
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

function bytesOf(text: string | null): number {
  return text === null ? 0 : Buffer.byteLength(text);
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
  readonly #jobs: MigrationJobStore;
  readonly #store: MigrationStore;
  readonly #application: RowApplication;

  constructor(parts: MigrationBatchesParts) {
    this.#parts = parts;
    this.#jobs = new MigrationJobStore(parts.db);
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
      const job = await this.#jobs.lockFree(nodeId, id);
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
    await this.#jobs.finish(job, 'done', atMs);
    return 'finished';
  }

  async #endBefore(job: MigrationJobRow, batch: RowBatch, atMs: number): Promise<BatchOutcome> {
    await this.#record(job, [endRowOf(job.next_index)], batch, atMs);
    await this.#jobs.finish(job, 'failed', atMs);
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
    await this.#jobs.step(job, {
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

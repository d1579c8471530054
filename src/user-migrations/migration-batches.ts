import type { Db } from '../db.ts';
import type { Log } from '../lib/log.ts';
import { endRecordOf, failedBytesOf, isTooMuch } from './failed-rows.rules.ts';
import type { FileBatch } from './file-batches.ts';
import { LEASE_MS, type MigrationJobRow, MigrationJobStore } from './migration-job-store.ts';
import { MigrationStore, type RowRecord } from './migration-store.ts';
import { RowApplication } from './row-application.ts';
import { faultRecordOf, recordOf } from './row-records.rules.ts';

/**
 * What became of a batch: its rows are applied; these were the last ones; the migration has failed before them, since its
 * failed rows would take too much room; others work at the job, or have brought it elsewhere, or to its end.
 */
export type BatchOutcome = 'applied' | 'finished' | 'overfull' | 'taken' | 'moved';

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
  async apply(claimed: MigrationJobRow, batch: FileBatch, owner: string): Promise<BatchOutcome> {
    try {
      return await this.#inJob(claimed, batch, owner, (job, atMs) => this.#applyBatch(job, batch, atMs));
    } catch (error) {
      if (!(error instanceof OverfullError)) throw error;
      return await this.#inJob(claimed, batch, owner, (job, atMs) => this.#endBefore(job, batch, atMs));
    }
  }

  #inJob(
    { node_id: nodeId, migration_id: id }: MigrationJobRow,
    { from }: FileBatch,
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

  async #applyBatch(job: MigrationJobRow, batch: FileBatch, atMs: number): Promise<BatchOutcome> {
    const records = await this.#applyRows(job, batch, atMs);
    if (isTooMuch(Number(job.failed_bytes) + failedBytesOf(records), batch.to)) throw new OverfullError();
    await this.#record(job, records, batch, atMs);
    if (!batch.isLast) return 'applied';
    await this.#jobs.finish(job, 'done', atMs);
    return 'finished';
  }

  async #endBefore(job: MigrationJobRow, batch: FileBatch, atMs: number): Promise<BatchOutcome> {
    await this.#record(job, [endRecordOf(job.next_index)], batch, atMs);
    await this.#jobs.finish(job, 'failed', atMs);
    return 'overfull';
  }

  async #record(
    job: MigrationJobRow,
    records: readonly RowRecord[],
    { to, nextIndex }: FileBatch,
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

  async #applyRows(job: MigrationJobRow, { rows }: FileBatch, atMs: number): Promise<RowRecord[]> {
    const sound = rows.filter((row) => row.fault === undefined);
    const faulty = rows.filter((row) => row.fault !== undefined).map(faultRecordOf);
    if (sound.length === 0) return faulty;
    const applied = await this.#application.apply({
      nodeId: job.node_id,
      correlationId: job.correlation_id,
      rows: sound.map(({ input }) => input),
      mayFail: true,
      atMs,
      numberOf: (row) => sound[row]?.index ?? 0,
    });
    return [...applied.map((row, at) => recordOf(row, sound[at]?.index ?? 0)), ...faulty];
  }
}

import type { Db } from '../db.ts';
import type { Log } from '../lib/log.ts';
import type { FileBatch } from './file-batches.ts';
import { LEASE_MS, type MigrationJobRow, MigrationJobStore } from './migration-job-store.ts';
import { MigrationStore, type RowRecord } from './migration-store.ts';
import { RowApplication } from './row-application.ts';
import { faultRecordOf, recordOf } from './row-records.rules.ts';

/**
 * What became of a batch: its rows are applied; these were the last ones; others work at the job, or have brought it
 * elsewhere, or to its end.
 */
export type BatchOutcome = 'applied' | 'finished' | 'taken' | 'moved';

interface MigrationBatchesParts {
  db: Db;
  log: Log;
  nowMs(): number;
}

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
  apply(claimed: MigrationJobRow, batch: FileBatch, owner: string): Promise<BatchOutcome> {
    const { node_id: nodeId, migration_id: id } = claimed;
    return this.#parts.db.transaction(async () => {
      const job = await this.#jobs.lockFree(nodeId, id);
      if (job?.lease_owner !== owner) return 'taken';
      if (Number(job.byte_position) !== batch.from) return 'moved';
      const atMs = this.#parts.nowMs();
      const records = await this.#applyRows(job, batch, atMs);
      if (records.length > 0) await this.#store.recordRows(nodeId, id, records);
      const count = (status: string) => records.filter((record) => record.status === status).length;
      await this.#jobs.step(job, {
        position: batch.to,
        nextIndex: batch.nextIndex,
        success: count('created'),
        skipped: count('skipped'),
        failed: count('failed'),
        leaseUntilMs: atMs + LEASE_MS,
      });
      if (!batch.isLast) return 'applied';
      await this.#jobs.finish(job, 'done', atMs);
      return 'finished';
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

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Log } from '../../lib/log.ts';
import { uuidV7 } from '../../lib/uuid-v7.ts';
import { backoffMs, WorkLoop } from '../../lib/work-loop.ts';
import type { Db } from '../../platform/database/database.ts';
import { Refusal, sqlState } from '../../platform/errors.ts';
import {
  LEASE_MS,
  type Lease,
  type MigrationJobRow,
  MigrationStore,
  type RowOutcomeRow,
  type WantedJob,
} from './migrations.store.ts';
import { countsOf, faultRowOf, outcomeRowOf, RowApplication } from './row-application.service.ts';
import {
  endRowOf,
  failedBytesOf,
  isTooMuch,
  type RowBatch,
  rowBatches,
  type UserMigrations,
} from './user-migrations.service.ts';

/**
 * Matches the classes of SQLSTATE after which the same statement may succeed later: connections (08), authorization
 * (28), colliding transactions (40), resources (53), locks (55), operators (57), disks (58) and read-only servers (25).
 */
const PASSING_STATES = /^(?:08|25|28|40|53|55|57|58)/;
const PASSING_CODES = /^(?:E[A-Z]{3,}|CONNECTION_[A-Z_]+)$/;
const PASSING_MESSAGES = /connection|terminat|timeout|timed out/i;

/** Checks whether an error means that a store is down for now, rather than that the work itself is faulty. */
export function isPassing(error: unknown): boolean {
  const state = sqlState(error);
  if (state !== undefined && !PASSING_CODES.test(state)) return PASSING_STATES.test(state);
  for (let current = error, depth = 0; current instanceof Error && depth < 5; depth += 1) {
    if (current instanceof Refusal && current.code === 'service_unavailable') return true;
    if ('code' in current && typeof current.code === 'string' && PASSING_CODES.test(current.code)) return true;
    if (PASSING_MESSAGES.test(current.message)) return true;
    current = current.cause;
  }
  return false;
}

/**
 * The outcome of an iteration. `none`: no job is free. `finished`: the job has ended. `yielded`: another process has
 * it, or it pauses after a failure. `more`: there is more to do.
 */
export type IterationOutcome = 'none' | 'finished' | 'yielded' | 'more';

/** The interval between polls, in ms, after which jobs of other processes are noticed. */
const JOB_POLL_MS = 1_000;
/** The greatest duration of an upload, in ms; older chunks without a job are abandoned. */
const UPLOAD_MS = 24 * 3_600_000;
/** The number of row batches that one iteration applies to a job; then the next job runs. */
const BATCHES_PER_ITERATION = 20;
const ATTEMPTS = 3;

/** Thrown to roll back a batch after which the failed rows of its file would take too many bytes. */
class OverfullError extends Error {}

/**
 * Runs the migrations of files, one job at a time, each for some row batches. Among all processes one works at a job,
 * and takes over the jobs of a process that has died. While the database is down the jobs wait. It stops after the row
 * batch in progress; other processes may continue the job at once.
 */
export class MigrationJobs extends WorkLoop {
  readonly #deps;
  readonly #store: MigrationStore;
  readonly #application: RowApplication;
  readonly #owner = uuidV7();

  constructor(deps: {
    db: Db;
    log: Log;
    nowMs(): number;
    userMigrations: Pick<UserMigrations, 'exclusively'>;
    /** Called after each row batch with the number of rows of the file that have an outcome so far. */
    onBatch?: ((rows: number) => void) | undefined;
  }) {
    super({
      iterate: async (signal) => (await this.iterate(signal)) !== 'none',
      onFailure: (error) => deps.log.warn({ err: error }, 'file migrations paused; database unavailable'),
      pollMs: JOB_POLL_MS,
    });
    this.#deps = deps;
    this.#store = new MigrationStore(deps.db);
    this.#application = new RowApplication(deps.db, deps.log);
  }

  /** Returns a lease for this process, which begins now. */
  lease(): Lease {
    return { owner: this.#owner, untilMs: this.#deps.nowMs() + LEASE_MS };
  }

  /**
   * Works at the free job that has waited longest, or at the wanted one, for some row batches or until `signal` aborts.
   * Afterwards it releases the job, unless it is the wanted one and `signal` has not aborted.
   * @throws what the database throws while it is down.
   */
  async iterate(signal: AbortSignal, wantedJob?: WantedJob): Promise<IterationOutcome> {
    const { nowMs } = this.#deps;
    const job = await this.#store.claim(this.lease(), nowMs(), wantedJob);
    if (!job) return 'none';
    try {
      const end = await this.#work(job, signal);
      const isKept = wantedJob !== undefined && !signal.aborted;
      if (end === 'more' && !isKept) await this.#store.release(job, this.#owner, nowMs());
      return end;
    } catch (error) {
      if (isPassing(error)) throw error;
      await this.#fail(job, error);
      return 'yielded';
    }
  }

  async #work(job: MigrationJobRow, signal: AbortSignal): Promise<IterationOutcome> {
    const batches = rowBatches(this.#store, job);
    for (let worked = 0; worked < BATCHES_PER_ITERATION && !signal.aborted; worked += 1) {
      const end = await this.#apply(job, (await batches.next()).value);
      if (end) return end;
      // The embedded database answers within one tick of the event loop: without this pause, requests would wait for
      // the whole job.
      await nextTurn();
    }
    return 'more';
  }

  /**
   * Applies a row batch: the users, events, row outcomes and the job's progress are written in one transaction. Returns
   * the outcome of the iteration if the batch ends it, and undefined otherwise.
   */
  async #apply(claimed: MigrationJobRow, batch: RowBatch): Promise<IterationOutcome | undefined> {
    try {
      const end = await this.#inJob(claimed, batch, async (job, atMs) => {
        const records = await this.#applyRows(job, batch, atMs);
        if (isTooMuch(Number(job.failed_bytes) + failedBytesOf(records), batch.to)) throw new OverfullError();
        await this.#record(job, records, batch, atMs);
        if (!batch.isLast) return undefined;
        await this.#store.finish(job, 'done', atMs);
        return 'finished';
      });
      if (end === undefined || end === 'finished') this.#deps.onBatch?.(batch.nextIndex - 1);
      return end;
    } catch (error) {
      if (!(error instanceof OverfullError)) throw error;
    }
    const end = await this.#inJob(claimed, batch, async (job, atMs) => {
      await this.#record(job, [endRowOf(job.next_index)], batch, atMs);
      await this.#store.finish(job, 'failed', atMs);
      return 'finished';
    });
    const { correlation_id, migration_id } = claimed;
    const fields = { correlation_id, migration_id, row: batch.nextIndex - batch.rows.length };
    const message =
      'migration failed: its failed rows and rows without an identifier would take over 10 times the bytes read';
    if (end === 'finished') this.#deps.log.warn(fields, message);
    return end;
  }

  /** Runs `work` in a transaction that locks the job, unless the job is at another position or another owner has it. */
  #inJob(
    { node_id: nodeId, migration_id: id }: MigrationJobRow,
    { from }: RowBatch,
    work: (job: MigrationJobRow, atMs: number) => Promise<IterationOutcome | undefined>,
  ): Promise<IterationOutcome | undefined> {
    const locked = async () => {
      const job = await this.#store.lock(nodeId, id, false);
      if (job?.lease_owner !== this.#owner) return 'yielded';
      return Number(job.byte_position) === from ? work(job, this.#deps.nowMs()) : 'more';
    };
    return this.#deps.userMigrations.exclusively(nodeId, () => this.#deps.db.transaction(locked));
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
      isDryRun: job.dry_run_columns !== null,
      atMs,
      numberOf: (row) => sound[row]?.index ?? 0,
    });
    return [...applied.map((row, at) => outcomeRowOf(row, sound[at]?.index ?? 0)), ...faulty];
  }

  async #record(
    job: MigrationJobRow,
    records: readonly RowOutcomeRow[],
    { to, nextIndex }: RowBatch,
    atMs: number,
  ): Promise<void> {
    if (records.length > 0) await this.#store.recordRows(job.node_id, job.migration_id, records);
    await this.#store.step(job, countsOf(records), {
      byte_position: String(to),
      next_index: nextIndex,
      failed_bytes: String(Number(job.failed_bytes) + failedBytesOf(records)),
      lease_until: new Date(atMs + LEASE_MS).toISOString(),
    });
  }

  /** Handles a failed row batch: the job pauses, and after three attempts at one position the migration has failed. */
  async #fail({ node_id: nodeId, migration_id: id }: MigrationJobRow, error: unknown): Promise<void> {
    const { db, log, nowMs } = this.#deps;
    const failed = await db.transaction(async () => {
      const job = await this.#store.lock(nodeId, id, true);
      if (job?.lease_owner !== this.#owner) return undefined;
      const attempts = job.attempts + 1;
      if (attempts < ATTEMPTS) await this.#store.fail(job, attempts, nowMs() + backoffMs(attempts));
      else await this.#store.finish(job, 'failed', nowMs());
      return { job, attempts };
    });
    if (!failed) return;
    const { correlation_id, next_index: row } = failed.job;
    const fields = { err: error, correlation_id, migration_id: id, row };
    if (failed.attempts < ATTEMPTS) log.warn(fields, 'could not apply rows of a file; retrying');
    else log.error(fields, 'migration failed: cannot apply rows of its file');
  }

  /** Deletes the chunks of uploads that were abandoned. */
  deleteAbandoned(): Promise<void> {
    return this.#store.deleteAbandoned(this.#deps.nowMs() - UPLOAD_MS);
  }
}

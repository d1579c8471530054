import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Db } from '../db.ts';
import { backoffMs } from '../events/backoff.ts';
import type { Log } from '../lib/log.ts';
import { uuidV7 } from '../lib/uuid-v7.ts';
import { WorkLoop } from '../lib/work-loop.ts';
import { type FileBatch, FileBatches } from './file-batches.ts';
import { isPassing } from './job-faults.rules.ts';
import { MigrationBatches } from './migration-batches.ts';
import { MigrationFileStore } from './migration-file-store.ts';
import {
  LEASE_MS,
  type Lease,
  type MigrationJobRow,
  MigrationJobStore,
  type WantedJob,
} from './migration-job-store.ts';
import type { UserMigrations } from './user-migrations.service.ts';

interface MigrationJobsParts {
  db: Db;
  log: Log;
  nowMs(): number;
  userMigrations: Pick<UserMigrations, 'inTurn'>;
  /** Told after each batch how many rows of its file have an outcome. */
  onBatch?(rows: number): void;
}

/** What a turn came to: no job is free; the job has ended; others have it or it rests after a fault; there is more to do. */
export type TurnEnd = 'none' | 'finished' | 'yielded' | 'more';

/** Jobs of other processes are seen by then at the latest. */
const POLL_MS = 1_000;
const SWEEP_EVERY_MS = 3_600_000;
/** No upload takes longer. */
const UPLOAD_MS = 24 * 3_600_000;
/** After so many batches the next job has its turn. */
const BATCHES_PER_TURN = 20;
const ATTEMPTS = 3;

/**
 * Runs the migrations of files, one turn after another, each job for some batches. Of all replicas one works at a job;
 * the job of one that has died is taken over. While the database is away the jobs wait.
 */
export class MigrationJobs {
  readonly #parts: MigrationJobsParts;
  readonly #files: MigrationFileStore;
  readonly #store: MigrationJobStore;
  readonly #batches: MigrationBatches;
  readonly #owner = uuidV7();
  readonly #loop: WorkLoop;
  #sweptAtMs: number | undefined;

  constructor(parts: MigrationJobsParts) {
    this.#parts = parts;
    this.#files = new MigrationFileStore(parts.db);
    this.#store = new MigrationJobStore(parts.db);
    this.#batches = new MigrationBatches(parts);
    this.#loop = new WorkLoop({
      turn: async (signal) => {
        await this.#sweep();
        return (await this.turn(signal)) !== 'none';
      },
      onFailure: (error) => parts.log.warn({ err: error }, 'migrations of files wait: the database is away'),
      restMs: backoffMs,
      pollMs: POLL_MS,
    });
  }

  /** Works from now on. */
  start(): void {
    this.#loop.start();
  }

  /** There is a job to do: sooner than the next look. */
  notify(): void {
    this.#loop.notify();
  }

  /** Ends after the batch that is under way; others may go on with the job at once. */
  async stop(): Promise<void> {
    await this.#loop.stop();
  }

  /** A lease for this process from now on. */
  lease(): Lease {
    return { owner: this.#owner, untilMs: this.#parts.nowMs() + LEASE_MS };
  }

  /**
   * Works at the job that has waited longest, for some batches or until `signal` aborts, and lets the next one have its
   * turn; or at the wanted one, which this process keeps.
   * @throws what the database throws while it is away.
   */
  async turn(signal: AbortSignal, wanted?: WantedJob): Promise<TurnEnd> {
    const { nowMs } = this.#parts;
    const job = await this.#store.claim(this.lease(), nowMs(), wanted);
    if (!job) return 'none';
    try {
      const end = await this.#work(job, signal);
      const isKept = wanted !== undefined && !signal.aborted;
      if (end === 'more' && !isKept) await this.#store.release(job, this.#owner, nowMs());
      return end;
    } catch (error) {
      if (isPassing(error)) throw error;
      await this.#fail(job, error);
      return 'yielded';
    }
  }

  async #work(job: MigrationJobRow, signal: AbortSignal): Promise<TurnEnd> {
    const batches = new FileBatches(this.#files, job);
    let next = batches.read();
    try {
      for (let done = 0; done < BATCHES_PER_TURN && !signal.aborted; done += 1) {
        const batch = await next;
        if (!batch.isLast) next = readAhead(batches);
        const end = await this.#apply(job, batch);
        if (end) return end;
        // The embedded database answers without a turn of the event loop: requests would wait for the whole job.
        await nextTurn();
      }
      return 'more';
    } finally {
      await next.catch(() => undefined);
    }
  }

  /** Applies a batch; gives how the turn ends where it does. */
  async #apply(job: MigrationJobRow, batch: FileBatch): Promise<TurnEnd | undefined> {
    const apply = () => this.#batches.apply(job, batch, this.#owner);
    const outcome = await this.#parts.userMigrations.inTurn(job.node_id, apply);
    switch (outcome) {
      case 'applied':
        this.#parts.onBatch?.(batch.nextIndex - 1);
        return undefined;
      case 'finished':
        this.#parts.onBatch?.(batch.nextIndex - 1);
        return 'finished';
      case 'overfull':
        this.#parts.log.warn(
          {
            correlation_id: job.correlation_id,
            migration_id: job.migration_id,
            row: batch.nextIndex - batch.rows.length,
          },
          'a migration has failed: its failed rows would take more than 10 times the bytes read of its file',
        );
        return 'finished';
      case 'moved':
        return 'more';
      case 'taken':
        return 'yielded';
      default:
        return outcome satisfies never;
    }
  }

  /** After some attempts at one position the migration has failed; until then it rests. */
  async #fail(claimed: MigrationJobRow, error: unknown): Promise<void> {
    const { node_id: nodeId, migration_id: id } = claimed;
    const { db, log, nowMs } = this.#parts;
    const failed = await db.transaction(async () => {
      const job = await this.#store.lock(nodeId, id);
      if (job?.lease_owner !== this.#owner) return undefined;
      const attempts = job.attempts + 1;
      if (attempts < ATTEMPTS) await this.#store.fail(job, attempts, nowMs() + backoffMs(attempts));
      else await this.#store.finish(job, 'failed', nowMs());
      return { job, attempts };
    });
    if (!failed) return;
    const { correlation_id, next_index: row } = failed.job;
    const fields = { err: error, correlation_id, migration_id: id, row };
    if (failed.attempts < ATTEMPTS) log.warn(fields, 'rows of a file could not be applied: they are tried again');
    else log.error(fields, 'a migration has failed: rows of its file cannot be applied');
  }

  async #sweep(): Promise<void> {
    const nowMs = this.#parts.nowMs();
    if (this.#sweptAtMs !== undefined && nowMs - this.#sweptAtMs < SWEEP_EVERY_MS) return;
    await this.#files.sweep(nowMs - UPLOAD_MS);
    this.#sweptAtMs = nowMs;
  }
}

/** Reads while the batch before is applied; it is awaited after that: until then a failure is nobody's. */
function readAhead(batches: FileBatches): Promise<FileBatch> {
  const next = batches.read();
  next.catch(() => undefined);
  return next;
}

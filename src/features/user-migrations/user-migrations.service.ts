import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Caller } from '../../access/identity/callers.ts';
import type { Log } from '../../lib/log.ts';
import { KeyedMutex } from '../../lib/semaphore.ts';
import { uuidV7 } from '../../lib/uuid-v7.ts';
import type { Db } from '../../platform/database/database.ts';
import { serviceUnavailable } from '../../platform/errors.ts';
import { requestSignal } from '../../platform/held-memory.ts';
import { present, type UserRow } from '../users/users.rules.ts';
import { CsvRecords, type FileRow, fileRowOf } from './csv.rules.ts';
import { MAX_BULK_ROWS, type MigrateUserInput } from './migration.input.ts';
import type { SkipReason } from './migration-outcome.rules.ts';
import {
  FILE_CHUNK_BYTES,
  type MigrationJobRow,
  MigrationStore,
  type MigrationTableRow,
  type RowOutcomeRow,
} from './migrations.store.ts';
import {
  type AppliedRow,
  countsOf,
  faultRowOf,
  outcomeRowOf,
  RowApplication,
  type RowsToApply,
} from './row-application.service.ts';

/** The greatest number of user migrations of one tenant that wait for the mutex. Each may hold 500 rows. */
export const MAX_WAITING_MIGRATIONS = 32;

/** The caller of a user migration, in the request with this correlation id. */
export type MigrationCaller = Pick<Caller, 'nodeId' | 'subject' | 'correlationId'> &
  Partial<Pick<Caller, 'traceparent'>>;

/** A completed user migration with the outcomes of its rows. */
export interface AppliedMigration extends MigrationTableRow {
  rows: AppliedRow[];
}

/** The outcome of migrating a single user: created, or skipped for a reason. */
export type MigratedUser = { user: UserRow } | { skipped: SkipReason };

/**
 * Migrates users (docs/contract.md, 4.6 and 4.7). Duplicates are found by one query, outcomes are decided in
 * memory, and users, events and outcomes are written in one transaction.
 */
export class UserMigrations {
  readonly #deps;
  /**
   * A mutex for each tenant, so that its user migrations run one at a time. The database ensures the same across
   * processes; waiting here holds no connection.
   */
  readonly #mutex = new KeyedMutex({
    maxWaiting: MAX_WAITING_MIGRATIONS,
    refusal: serviceUnavailable,
    signalOf: requestSignal,
  });
  readonly #store: MigrationStore;
  readonly #application: RowApplication;

  constructor(deps: {
    db: Db;
    log: Log;
    nowMs(): number;
    /** Called when new events may be in the outbox. */
    notify(): void;
  }) {
    this.#deps = deps;
    this.#store = new MigrationStore(deps.db);
    this.#application = new RowApplication(deps.db, deps.log);
  }

  /**
   * Runs `work`, which migrates users in a transaction, while no other such work of the tenant runs in this process.
   * Inside a transaction it does not wait, since the caller that began the transaction has waited.
   * @throws Refusal `service_unavailable` when too many are waiting.
   */
  async exclusively<Result>(nodeId: string, work: () => Promise<Result>): Promise<Result> {
    if (this.#deps.db.isInTransaction) return work();
    const result = await this.#mutex.run(nodeId, work);
    this.#deps.notify();
    return result;
  }

  /**
   * Migrates 1 to 500 users. A row that the database refuses is failed; the other rows are migrated. A dry run stores
   * the migration with the same outcomes, and no user.
   */
  migrateMany(caller: MigrationCaller, rows: readonly MigrateUserInput[], isDryRun = false): Promise<AppliedMigration> {
    return this.#migrate(caller, rows, { mayFail: true, isDryRun });
  }

  /**
   * Migrates one user.
   * @throws what the database throws; then nothing has been written.
   */
  async migrateOne(caller: MigrationCaller, input: MigrateUserInput): Promise<MigratedUser> {
    const [row] = (await this.#migrate(caller, [input], { mayFail: false, isDryRun: false })).rows;
    if (row?.user) return { user: row.user };
    if (row?.outcome.status !== 'skipped') throw new Error('one user is created or skipped');
    return { skipped: row.outcome.reason };
  }

  #migrate(
    { nodeId, subject, correlationId, traceparent }: MigrationCaller,
    rows: readonly MigrateUserInput[],
    mode: Pick<RowsToApply, 'mayFail' | 'isDryRun'>,
  ): Promise<AppliedMigration> {
    return this.#deps.db.transaction(async () => {
      const atMs = this.#deps.nowMs();
      const applied = await this.#application.apply({ nodeId, correlationId, traceparent, rows, ...mode, atMs });
      const outcomes = applied.map((row, index) => outcomeRowOf(row, index + 1));
      const finished = {
        id: uuidV7(atMs),
        created_by: subject,
        dry_run: mode.isDryRun,
        total: rows.length,
        ...countsOf(outcomes),
      };
      const migration = await this.#store.record(nodeId, finished, atMs);
      await this.#store.recordRows(nodeId, migration.id, outcomes);
      return { ...migration, rows: applied };
    });
  }
}

/** Returns the result of a bulk migration as REST shows it (docs/contract.md, 2.9-01). */
export function bulkResultView({ total, success, skipped, failed, rows }: AppliedMigration) {
  const results = rows.map(({ input, outcome, user }) => ({
    ...(present(input.email) ? { email: input.email } : {}),
    ...(present(input.external_id) ? { external_id: input.external_id } : {}),
    ...(user ? { user_id: user.id } : {}),
    status: outcome.status,
    ...(outcome.status === 'created' ? {} : { reason: outcome.reason }),
  }));
  return { total, success, skipped, failed, results };
}

/** A row batch: consecutive rows of a file. It may have no rows: at the end of the file, or if it is full of empty lines. */
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
/**
 * The same for a dry run, in which a row sees only the rows of its batch. It is more than 500 valid rows take, so that up to
 * 500 rows see each other.
 */
const MAX_DRY_RUN_BYTES = 64 * 1024 ** 2;

/**
 * Reads a job's file in row batches, starting at the job's position. It holds at most two chunks. Nothing may be read
 * after the last batch.
 */
export async function* rowBatches(store: MigrationStore, job: MigrationJobRow): AsyncGenerator<RowBatch, never> {
  const position = Number(job.byte_position);
  const columns = (job.dry_run_columns ?? job.columns).split(',');
  const maxBytes = job.dry_run_columns === null ? MAX_BATCH_BYTES : MAX_DRY_RUN_BYTES;
  const records = new CsvRecords(position, columns);
  let nextIndex = job.next_index;
  let seq = Math.floor(position / FILE_CHUNK_BYTES);
  // The bytes of the first chunk that are before the job's position.
  let passed = position % FILE_CHUNK_BYTES;
  for (let isEnded = false, isLast = false; ; ) {
    const from = records.position;
    const rows: FileRow[] = [];
    while (!isLast && rows.length < MAX_BULK_ROWS && records.position - from < maxBytes) {
      const record = records.nextRecord();
      if (record) {
        rows.push(fileRowOf(record, columns, nextIndex));
        nextIndex += 1;
        continue;
      }
      isLast = isEnded;
      const chunk: Buffer | undefined = isEnded ? undefined : await store.chunk(job.node_id, job.migration_id, seq);
      // The embedded database answers within one tick of the event loop: without this pause, requests would wait for a
      // long batch.
      await nextTurn();
      if (chunk) records.push(chunk.subarray(passed));
      else records.end();
      isEnded = !chunk;
      passed = 0;
      seq += 1;
    }
    yield { from, to: records.position, rows, nextIndex, isLast };
  }
}

/**
 * The bytes that PostgreSQL needs for a failed row without its texts, as measured: 79 in the table and 41 in the index.
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

/** Returns the number of bytes that it takes to store these rows' failures and missing identifiers. */
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
  const why = `its failed rows and rows without an identifier would take more than ${STORED_PER_READ} times the bytes read of the file`;
  const fault = `line ${index}: the migration stopped here: ${why}`;
  return faultRowOf({ index, fault, email: undefined, externalId: undefined });
}

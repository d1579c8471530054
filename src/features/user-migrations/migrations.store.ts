import type { Insertable, Selectable } from 'kysely';
import { cutTo } from '../../lib/input.ts';
import { iso } from '../../lib/instants.ts';
import type { Db } from '../../platform/database/database.ts';
import { insertRows } from '../../platform/database/row-sets.ts';
import { Refusal } from '../../platform/errors.ts';
import type { Tables } from '../../tables/tables.ts';
import { MAX_LENGTHS } from '../../tables/text-lengths.ts';

/** A user migration as read from the table; times are PostgreSQL's text in UTC, to the microsecond. */
export type MigrationTableRow = Selectable<Tables['migrations']>;

/** The stored outcome of one row of a user migration; `index` counts from 1. */
export type RowOutcomeRow = Omit<Selectable<Tables['migration_rows']>, 'migration_id' | 'node_id'>;

const OUTCOME_COLUMNS = {
  uuid: ['migration_id', 'node_id', 'user_id'],
  integer: ['index'],
  text: ['email', 'external_id', 'status', 'reason'],
  'uuid[]': ['noted_users'],
} as const;

/** The size in bytes of every chunk of a file except the last, so that a position in the file determines its chunk. */
export const FILE_CHUNK_BYTES = 256 * 1024;

/**
 * The maximum number of chunks of a tenant's files that are being uploaded or wait to be migrated: 4 GiB. A short chunk
 * counts in full.
 */
export const MAX_WAITING_CHUNKS = (4 * 1024 ** 3) / FILE_CHUNK_BYTES;

const TOO_MANY_CHUNKS =
  'the files of this tenant that are being uploaded or waiting take 4 GiB: wait until migrations end, or cancel one';

/**
 * The duration of a lease, in ms, renewed after each row batch. It is how long others wait for a process that has died.
 */
export const LEASE_MS = 10_000;

export type MigrationJobRow = Selectable<Tables['migration_jobs']>;

/** A lease of a job: its owner, and its end in ms since 1970. */
export interface Lease {
  owner: string;
  untilMs: number;
}

/** A job selected by the id of its migration. `isForced` takes it even from another owner. */
export interface WantedJob {
  id: string;
  isForced: boolean;
}

/** Stores user migrations, their rows, files and jobs. Each method runs one statement unless it says otherwise. */
export class MigrationStore {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /** Stores a completed user migration and returns it. */
  async record(
    nodeId: string,
    finished: Omit<Insertable<Tables['migrations']>, 'node_id' | 'status' | 'created_at' | 'finished_at'>,
    atMs: number,
  ): Promise<MigrationTableRow> {
    const at = new Date(atMs).toISOString();
    const created_by = storedCaller(finished.created_by);
    const values = { ...finished, created_by, status: 'done' as const, created_at: at, finished_at: at };
    const [migration] = await this.#db
      .forNode(nodeId)
      .run((k) => k.insertInto('migrations').values(values).returningAll());
    if (!migration) throw new Error('a migration is recorded');
    return migration;
  }

  /** Stores the outcomes of rows of a user migration. */
  async recordRows(nodeId: string, migrationId: string, rows: readonly RowOutcomeRow[]): Promise<void> {
    const placed = rows.map((row) => {
      const noted_users = row.noted_users && `{${row.noted_users}}`;
      return { ...row, migration_id: migrationId, node_id: nodeId, noted_users };
    });
    await this.#db
      .unscoped('statements on row sets name their node')
      .raw((sql) => insertRows(sql, 'migration_rows', placed, OUTCOME_COLUMNS));
  }

  /**
   * Adds a chunk of a file. Runs three statements in a transaction: a lock makes the uploads of a tenant count one after
   * the other.
   * @throws Refusal `precondition_failed` when the tenant has `maxChunks` already.
   */
  async addChunk(
    nodeId: string,
    chunk: Omit<Insertable<Tables['migration_files']>, 'node_id'>,
    maxChunks: number,
  ): Promise<void> {
    const scoped = this.#db.forNode(nodeId);
    await this.#db.transaction(async () => {
      await this.#db
        .unscoped('advisory lock, no table')
        .raw((sql) => sql`select pg_advisory_xact_lock(hashtextextended(${`files of ${nodeId}`}::text, 0))`);
      const [stored] = await scoped.run((k) =>
        k.selectFrom('migration_files').select((eb) => eb.fn.countAll<string>().as('chunks')),
      );
      if (Number(stored?.chunks) >= maxChunks) throw new Refusal('precondition_failed', { message: TOO_MANY_CHUNKS });
      await scoped.run((k) => k.insertInto('migration_files').values(chunk));
    });
  }

  /** Reads the chunk with this number, counted from 0; undefined after the last one. */
  async chunk(nodeId: string, id: string, seq: number): Promise<Buffer | undefined> {
    const [row] = await this.#db
      .forNode(nodeId)
      .run((k) =>
        k.selectFrom('migration_files').select('bytes').where('migration_id', '=', id).where('seq', '=', seq),
      );
    return row && Buffer.from(row.bytes.buffer, row.bytes.byteOffset, row.bytes.byteLength);
  }

  async dropFile(nodeId: string, migrationId: string): Promise<void> {
    await this.#db.forNode(nodeId).run((k) => k.deleteFrom('migration_files').where('migration_id', '=', migrationId));
  }

  /**
   * Stores the user migration of a file and its job in one transaction, and returns the migration.
   * @throws Error when some chunks of the file are missing.
   */
  async recordFile(file: {
    id: string;
    nodeId: string;
    subject: string;
    correlationId: string;
    columns: readonly string[];
    /** The position of the first data row in the file, in bytes. */
    position: number;
    rows: number;
    chunks: number;
    atMs: number;
    isDryRun: boolean;
    /** What it is called. */
    name: string | null;
    lease: Lease | undefined;
  }): Promise<MigrationTableRow> {
    const { id, nodeId, subject, correlationId, columns, position, rows, chunks, atMs, isDryRun, name, lease } = file;
    const scoped = this.#db.forNode(nodeId);
    return this.#db.transaction(async () => {
      const [stored] = await scoped.run((k) =>
        k
          .selectFrom('migration_files')
          .select((eb) => eb.fn.countAll<string>().as('chunks'))
          .where('migration_id', '=', id),
      );
      if (Number(stored?.chunks) !== chunks) throw new Error('the upload was too slow: its first chunks have expired');
      const migration = {
        id,
        status: 'running' as const,
        total: rows,
        dry_run: isDryRun,
        file_name: name,
        created_by: storedCaller(subject),
        created_at: iso(atMs),
      };
      const [recorded] = await scoped.run((k) => k.insertInto('migrations').values(migration).returningAll());
      if (!recorded) throw new Error('a migration is recorded');
      const job = {
        migration_id: id,
        columns: isDryRun ? '' : columns.join(','),
        dry_run_columns: isDryRun ? columns.join(',') : null,
        byte_position: String(position),
        next_index: 1,
        correlation_id: correlationId,
        lease_owner: lease?.owner ?? null,
        lease_until: iso(lease?.untilMs ?? atMs),
      };
      await scoped.run((k) => k.insertInto('migration_jobs').values(job));
      return recorded;
    });
  }

  /** Deletes chunks stored at or before `beforeMs` (ms since 1970) that belong to no job. */
  async deleteAbandoned(beforeMs: number): Promise<void> {
    await this.#db.unscoped('abandoned uploads of all nodes').run((k) =>
      k
        .deleteFrom('migration_files')
        .where('created_at', '<=', iso(beforeMs))
        .where((eb) =>
          eb.not(
            eb.exists(
              eb
                .selectFrom('migration_jobs')
                .select('migration_jobs.migration_id')
                .whereRef('migration_jobs.migration_id', '=', 'migration_files.migration_id'),
            ),
          ),
        ),
    );
  }

  /**
   * Takes a lease on the free job that has waited longest, or on the wanted one; returns undefined when there is none.
   */
  async claim({ owner, untilMs }: Lease, nowMs: number, wantedJob?: WantedJob): Promise<MigrationJobRow | undefined> {
    const [job] = await this.#db.unscoped('one job queue for all nodes').run((k) =>
      k
        .updateTable('migration_jobs')
        .set({ lease_owner: owner, lease_until: iso(untilMs) })
        .where('migration_id', '=', (eb) =>
          eb
            .selectFrom('migration_jobs as free')
            .select('free.migration_id')
            .$if(wantedJob?.isForced !== true, (query) =>
              query.where((free) =>
                free.or([free('free.lease_until', '<=', iso(nowMs)), free('free.lease_owner', '=', owner)]),
              ),
            )
            .$if(wantedJob !== undefined, (query) => query.where('free.migration_id', '=', wantedJob?.id ?? ''))
            .orderBy('free.lease_until')
            .limit(1)
            .forUpdate()
            .skipLocked(),
        )
        .returningAll(),
    );
    return job;
  }

  /** Ends this owner's lease: from `fromMs` (ms since 1970) any process may take the job. */
  async release({ node_id: nodeId, migration_id: id }: MigrationJobRow, owner: string, fromMs: number): Promise<void> {
    await this.#db.forNode(nodeId).run((k) =>
      k
        .updateTable('migration_jobs')
        .set({ lease_owner: null, lease_until: iso(fromMs) })
        .where('migration_id', '=', id)
        .where('lease_owner', '=', owner),
    );
  }

  /**
   * Locks a job until the end of the transaction and returns it; undefined when it has ended, or, unless `waits`, when
   * another transaction holds the lock.
   */
  async lock(nodeId: string, id: string, waits: boolean): Promise<MigrationJobRow | undefined> {
    const [job] = await this.#db.forNode(nodeId).run((k) =>
      k
        .selectFrom('migration_jobs')
        .selectAll()
        .where('migration_id', '=', id)
        .forUpdate()
        .$if(!waits, (query) => query.skipLocked()),
    );
    return job;
  }

  /** Adds the outcomes of a row batch to a migration, and sets the progress of its job. Runs two statements. */
  async step(
    { node_id: nodeId, migration_id: id }: MigrationJobRow,
    { success, skipped, failed }: Record<'success' | 'skipped' | 'failed', number>,
    progress: Pick<MigrationJobRow, 'byte_position' | 'next_index' | 'failed_bytes' | 'lease_until'>,
  ): Promise<void> {
    const scoped = this.#db.forNode(nodeId);
    await scoped.run((k) =>
      k
        .updateTable('migrations')
        .set((eb) => ({
          success: eb('success', '+', success),
          skipped: eb('skipped', '+', skipped),
          failed: eb('failed', '+', failed),
        }))
        .where('id', '=', id),
    );
    await scoped.run((k) =>
      k
        .updateTable('migration_jobs')
        .set({ ...progress, attempts: 0 })
        .where('migration_id', '=', id),
    );
  }

  /**
   * Records a failed attempt at the job's position and ends the lease; no process may take the job before `untilMs` (ms
   * since 1970).
   */
  async fail({ node_id: nodeId, migration_id: id }: MigrationJobRow, attempts: number, untilMs: number): Promise<void> {
    await this.#db.forNode(nodeId).run((k) =>
      k
        .updateTable('migration_jobs')
        .set({ attempts, lease_owner: null, lease_until: iso(untilMs) })
        .where('migration_id', '=', id),
    );
  }

  /** Ends a user migration and deletes its job and its file. Runs three statements, so call it in a transaction. */
  async finish(
    { node_id: nodeId, migration_id: id }: MigrationJobRow,
    status: 'done' | 'cancelled' | 'failed',
    atMs: number,
  ): Promise<MigrationTableRow> {
    const scoped = this.#db.forNode(nodeId);
    const [migration] = await scoped.run((k) =>
      k
        .updateTable('migrations')
        .set({ status, finished_at: iso(atMs) })
        .where('id', '=', id)
        .returningAll(),
    );
    await scoped.run((k) => k.deleteFrom('migration_jobs').where('migration_id', '=', id));
    await this.dropFile(nodeId, id);
    if (!migration) throw new Error('a job has a migration');
    return migration;
  }
}

/** Returns the `sub` of a caller's token as it is stored: another issuer's may be of any length. */
function storedCaller(subject: string): string {
  return cutTo(subject, MAX_LENGTHS.migrations.created_by);
}

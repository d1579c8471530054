import type { Insertable, Selectable } from 'kysely';
import type { Db } from '../../platform/database/database.ts';
import { textColumn } from '../../platform/database/sql-state.ts';
import type { Tables } from '../../tables/tables.ts';
import type { MigrationTableRow } from './migration-pages.service.ts';

/** A migration that is done, without what the store adds to it. */
type DoneMigration = Omit<Insertable<Tables['migrations']>, 'node_id' | 'status' | 'created_at' | 'finished_at'>;

/** What is kept of a row of a migration; `index` counts from 1. */
export type RowOutcomeRow = Omit<Selectable<Tables['migration_rows']>, 'migration_id' | 'node_id'>;

/** All chunks of a file but the last have this size, so that a position tells its chunk. */
export const FILE_CHUNK_BYTES = 256 * 1024;

/** A migration whose file has been stored. */
interface StoredFile {
  id: string;
  nodeId: string;
  createdBy: string;
  correlationId: string;
  columns: readonly string[];
  /** Where the first data row begins. */
  position: number;
  rows: number;
  chunks: number;
  atMs: number;
  lease: Lease | undefined;
}

/** Who works at a job has it for so long after each batch: others wait that long for a process that has died. */
export const LEASE_MS = 10_000;

export type MigrationJobRow = Selectable<Tables['migration_jobs']>;

/** Who works at a job, until when. */
export interface Lease {
  owner: string;
  untilMs: number;
}

/** A job by the id of its migration; forced: whoever has it. */
export interface WantedJob {
  id: string;
  isForced: boolean;
}

/** How far a batch has brought a job. */
interface JobStep {
  position: number;
  nextIndex: number;
  success: number;
  skipped: number;
  failed: number;
  /** Of all batches so far. */
  failedBytes: number;
  leaseUntilMs: number;
}

/** Migrations, their rows, files and jobs; each call is one statement unless it says otherwise. */
export class MigrationStore {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /** Records a migration that is done, and returns it. */
  async record(nodeId: string, done: DoneMigration, atMs: number): Promise<MigrationTableRow> {
    const at = new Date(atMs).toISOString();
    const values = { ...done, status: 'done' as const, created_at: at, finished_at: at };
    const [migration] = await this.#db
      .forNode(nodeId)
      .run((k) => k.insertInto('migrations').values(values).returningAll());
    if (!migration) throw new Error('a migration is recorded');
    return migration;
  }

  /** Records rows of a migration. */
  async recordRows(nodeId: string, migrationId: string, rows: readonly RowOutcomeRow[]): Promise<void> {
    const column = (name: keyof RowOutcomeRow) => textColumn(rows, name);
    await this.#db.unscoped('sets of rows of one node, which each statement names').raw(
      (sql) => sql`
        insert into migration_rows (migration_id, index, node_id, email, external_id, user_id, status, reason)
        select ${migrationId}::uuid, r.index::integer, ${nodeId}::uuid, r.email, r.external_id, r.user_id::uuid, r.status,
          r.reason
        from unnest(${column('index')}::text[], ${column('email')}::text[], ${column('external_id')}::text[],
          ${column('user_id')}::text[], ${column('status')}::text[], ${column('reason')}::text[])
          as r (index, email, external_id, user_id, status, reason)`,
    );
  }
  async addChunk(nodeId: string, migrationId: string, seq: number, bytes: Uint8Array, atMs: number): Promise<void> {
    const values = { migration_id: migrationId, seq, bytes, created_at: iso(atMs) };
    await this.#db.forNode(nodeId).run((k) => k.insertInto('migration_files').values(values));
  }

  /** The chunk with this number, from 0; undefined behind the last one. */
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
   * Records the migration of a file and its job, both or none, and returns the migration.
   * @throws Error where not all of the file is there.
   */
  async recordFile(file: StoredFile): Promise<MigrationTableRow> {
    const { id, nodeId, createdBy, correlationId, columns, position, rows, chunks, atMs, lease } = file;
    const door = this.#db.forNode(nodeId);
    return this.#db.transaction(async () => {
      const [stored] = await door.run((k) =>
        k
          .selectFrom('migration_files')
          .select((eb) => eb.fn.countAll<string>().as('chunks'))
          .where('migration_id', '=', id),
      );
      if (Number(stored?.chunks) !== chunks) throw new Error('the file came too slowly: its first parts are gone');
      const migration = { id, status: 'running' as const, total: rows, created_by: createdBy, created_at: iso(atMs) };
      const [recorded] = await door.run((k) => k.insertInto('migrations').values(migration).returningAll());
      if (!recorded) throw new Error('a migration is recorded');
      const job = {
        migration_id: id,
        columns: columns.join(','),
        byte_position: String(position),
        next_index: 1,
        correlation_id: correlationId,
        lease_owner: lease?.owner ?? null,
        lease_until: iso(lease?.untilMs ?? atMs),
      };
      await door.run((k) => k.insertInto('migration_jobs').values(job));
      return recorded;
    });
  }

  /** Deletes the chunks of files that were never brought to their end, those of a time and before. */
  async deleteAbandoned(beforeMs: number): Promise<void> {
    await this.#db.unscoped('uploads end early in every node').run((k) =>
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

  /** Takes the free job that has waited longest, or the wanted one; undefined where there is none. */
  async claim({ owner, untilMs }: Lease, nowMs: number, wanted?: WantedJob): Promise<MigrationJobRow | undefined> {
    const [job] = await this.#db.unscoped('jobs of all nodes wait in one queue').run((k) =>
      k
        .updateTable('migration_jobs')
        .set({ lease_owner: owner, lease_until: iso(untilMs) })
        .where('migration_id', '=', (eb) =>
          eb
            .selectFrom('migration_jobs as free')
            .select('free.migration_id')
            .$if(wanted?.isForced !== true, (query) =>
              query.where((free) =>
                free.or([free('free.lease_until', '<=', iso(nowMs)), free('free.lease_owner', '=', owner)]),
              ),
            )
            .$if(wanted !== undefined, (query) => query.where('free.migration_id', '=', wanted?.id ?? ''))
            .orderBy('free.lease_until')
            .limit(1)
            .forUpdate()
            .skipLocked(),
        )
        .returningAll(),
    );
    return job;
  }

  /** Anybody may take the job from a time on, unless somebody else has it. */
  async release({ node_id: nodeId, migration_id: id }: MigrationJobRow, owner: string, fromMs: number): Promise<void> {
    await this.#db.forNode(nodeId).run((k) =>
      k
        .updateTable('migration_jobs')
        .set({ lease_owner: null, lease_until: iso(fromMs) })
        .where('migration_id', '=', id)
        .where('lease_owner', '=', owner),
    );
  }

  /** Locks a job until the transaction ends, and gives it; undefined where it has ended, or somebody else has the lock. */
  async lockFree(nodeId: string, id: string): Promise<MigrationJobRow | undefined> {
    const [job] = await this.#db
      .forNode(nodeId)
      .run((k) => k.selectFrom('migration_jobs').selectAll().where('migration_id', '=', id).forUpdate().skipLocked());
    return job;
  }

  /** The same, but waits for the lock. */
  async lock(nodeId: string, id: string): Promise<MigrationJobRow | undefined> {
    const [job] = await this.#db
      .forNode(nodeId)
      .run((k) => k.selectFrom('migration_jobs').selectAll().where('migration_id', '=', id).forUpdate());
    return job;
  }

  /** Brings a job and its migration forward. Two statements. */
  async step({ node_id: nodeId, migration_id: id }: MigrationJobRow, step: JobStep): Promise<void> {
    const door = this.#db.forNode(nodeId);
    const { position, nextIndex, success, skipped, failed, failedBytes, leaseUntilMs } = step;
    await door.run((k) =>
      k
        .updateTable('migrations')
        .set((eb) => ({
          success: eb('success', '+', success),
          skipped: eb('skipped', '+', skipped),
          failed: eb('failed', '+', failed),
        }))
        .where('id', '=', id),
    );
    await door.run((k) =>
      k
        .updateTable('migration_jobs')
        .set({
          byte_position: String(position),
          next_index: nextIndex,
          failed_bytes: String(failedBytes),
          attempts: 0,
          lease_until: iso(leaseUntilMs),
        })
        .where('migration_id', '=', id),
    );
  }

  /** One more attempt at this position has failed; nobody tries before a time. */
  async fail({ node_id: nodeId, migration_id: id }: MigrationJobRow, attempts: number, untilMs: number): Promise<void> {
    await this.#db.forNode(nodeId).run((k) =>
      k
        .updateTable('migration_jobs')
        .set({ attempts, lease_owner: null, lease_until: iso(untilMs) })
        .where('migration_id', '=', id),
    );
  }

  /** Ends a migration: its job and its file go. Three statements, for a transaction. */
  async finish(
    { node_id: nodeId, migration_id: id }: MigrationJobRow,
    status: 'done' | 'cancelled' | 'failed',
    atMs: number,
  ): Promise<MigrationTableRow> {
    const door = this.#db.forNode(nodeId);
    const [migration] = await door.run((k) =>
      k
        .updateTable('migrations')
        .set({ status, finished_at: iso(atMs) })
        .where('id', '=', id)
        .returningAll(),
    );
    await door.run((k) => k.deleteFrom('migration_jobs').where('migration_id', '=', id));
    await this.dropFile(nodeId, id);
    if (!migration) throw new Error('a job has a migration');
    return migration;
  }
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}

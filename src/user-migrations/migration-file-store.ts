import type { Db } from '../db.ts';
import type { Lease } from './migration-job-store.ts';

/** All chunks of a file but the last have this size, so that a position tells its chunk. */
export const FILE_CHUNK_BYTES = 256 * 1024;

/** A migration whose file has been stored. */
export interface StoredFile {
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

/** The table of files, chunk by chunk; each call is one statement unless it says otherwise. */
export class MigrationFileStore {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
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

  /** Records the migration of a file and its job, both or none. @throws Error where not all of the file is there. */
  async record(file: StoredFile): Promise<void> {
    const { id, nodeId, createdBy, correlationId, columns, position, rows, chunks, atMs, lease } = file;
    const door = this.#db.forNode(nodeId);
    await this.#db.transaction(async () => {
      const [stored] = await door.run((k) =>
        k
          .selectFrom('migration_files')
          .select((eb) => eb.fn.countAll<string>().as('chunks'))
          .where('migration_id', '=', id),
      );
      if (Number(stored?.chunks) !== chunks) throw new Error('the file came too slowly: its first parts are gone');
      const migration = { id, status: 'running' as const, total: rows, created_by: createdBy, created_at: iso(atMs) };
      await door.run((k) => k.insertInto('migrations').values(migration));
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
    });
  }

  /** Deletes the chunks of files that were never brought to their end, those of a time and before. */
  async sweep(beforeMs: number): Promise<void> {
    await this.#everyNode().run((k) =>
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

  #everyNode() {
    return this.#db.unscoped('uploads end early in every node');
  }
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}

import type { Db } from '../db.ts';
import { notFoundRefusal, RefusalError } from '../errors/refusal.ts';
import { isUuid } from '../lib/input.ts';
import { uuidV7 } from '../lib/uuid-v7.ts';
import { chunksOf, type FileFacts, FileReading } from './file-upload.ts';
import { MigrationFileStore } from './migration-file-store.ts';
import { type Lease, MigrationJobStore } from './migration-job-store.ts';
import { MigrationPages, type MigrationTableRow } from './migration-pages.service.ts';
import type { MigrationCaller } from './user-migrations.service.ts';

/** How far a migration is: rows that have an outcome, of how many. */
export interface MigrationProgressRow {
  migration: MigrationTableRow;
  processed: number;
  /** null while nobody knows it. */
  total: number | null;
  done: boolean;
}

interface MigrationFilesParts {
  db: Db;
  nowMs(): number;
  /** There is a job to do. */
  notify(): void;
}

/** Files of users to migrate: each is stored, and then applied in batches by whoever runs jobs. */
export class MigrationFiles {
  readonly #parts: MigrationFilesParts;
  readonly #store: MigrationFileStore;
  readonly #jobs: MigrationJobStore;
  readonly #pages: MigrationPages;

  constructor(parts: MigrationFilesParts) {
    this.#parts = parts;
    this.#store = new MigrationFileStore(parts.db);
    this.#jobs = new MigrationJobStore(parts.db);
    this.#pages = new MigrationPages(parts.db);
  }

  /**
   * Stores a CSV file and records its migration, which runs from then on: by whoever has the lease, or by anybody.
   * @throws RefusalError `invalid` for a file whose header does not hold, or what the source throws; nothing is kept then.
   */
  async start(
    caller: MigrationCaller,
    source: AsyncIterable<Uint8Array>,
    lease?: () => Lease,
  ): Promise<{ id: string }> {
    const { nowMs, notify } = this.#parts;
    const atMs = nowMs();
    const id = uuidV7(atMs);
    try {
      const facts = await this.#keep(caller.nodeId, id, source);
      await this.#store.record({ ...caller, ...facts, id, atMs, lease: lease?.() });
    } catch (error) {
      // What cannot be deleted now is swept later.
      await this.#store.dropFile(caller.nodeId, id).catch(() => undefined);
      throw error;
    }
    notify();
    return { id };
  }

  /**
   * Ends a migration before its last row; what was applied stays. Once more changes nothing.
   * @throws RefusalError `not_found`, or `precondition` for a migration that is done or has failed.
   */
  async cancel(nodeId: string, id: string): Promise<MigrationTableRow> {
    if (!isUuid(id)) throw notFoundRefusal();
    return this.#parts.db.transaction(async () => {
      const job = await this.#jobs.lock(nodeId, id);
      if (job) return this.#jobs.finish(job, 'cancelled', this.#parts.nowMs());
      const migration = await this.#pages.find(nodeId, id);
      if (!migration) throw notFoundRefusal();
      if (migration.status === 'cancelled') return migration;
      const message = `the migration has ended already: it is ${migration.status}`;
      throw new RefusalError({ kind: 'precondition', message });
    });
  }

  /** How far a migration of the node is; undefined where there is none with this id. */
  async progress(nodeId: string, id: string): Promise<MigrationProgressRow | undefined> {
    if (!isUuid(id)) return undefined;
    const migration = await this.#pages.find(nodeId, id);
    if (!migration) return undefined;
    const { success, skipped, failed, total, status } = migration;
    return { migration, processed: success + skipped + failed, total, done: status !== 'running' };
  }

  /** Stores the chunks, one written while the next one is read. */
  async #keep(nodeId: string, id: string, source: AsyncIterable<Uint8Array>): Promise<FileFacts & { chunks: number }> {
    const reading = new FileReading();
    let chunks = 0;
    let writing: Promise<void> = Promise.resolve();
    try {
      for await (const chunk of chunksOf(source)) {
        reading.push(chunk);
        await writing;
        writing = this.#store.addChunk(nodeId, id, chunks, chunk, this.#parts.nowMs());
        // It is awaited before the next one; until then a failure is nobody's.
        writing.catch(() => undefined);
        chunks += 1;
      }
      const facts = reading.end();
      await writing;
      return { ...facts, chunks };
    } catch (error) {
      await writing.catch(() => undefined);
      throw error;
    }
  }
}

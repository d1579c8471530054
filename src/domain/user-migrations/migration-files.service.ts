import { isUuid } from '../../lib/input.ts';
import { uuidV7 } from '../../lib/uuid-v7.ts';
import type { Db } from '../../platform/database/database.ts';
import { notFoundRefusal, RefusalError } from '../../platform/errors.ts';
import { CsvRecords, columnsOf } from './csv.rules.ts';
import { MigrationPages, type MigrationTableRow } from './migration-pages.service.ts';
import { FILE_CHUNK_BYTES, type Lease, MigrationStore } from './migration-store.ts';
import type { MigrationCaller } from './user-migrations.service.ts';

const BYTE_ORDER_MARK = Buffer.from('\ufeff');

/** What is known of a file once all of it has come. */
interface FileFacts {
  columns: readonly string[];
  /** Where the first data row begins. */
  position: number;
  rows: number;
}

/** Reads a file while it passes: its columns, and how many data rows it has. */
class FileReading {
  #records: CsvRecords | undefined;
  #columns: readonly string[] | undefined;
  #position = 0;
  #rows = 0;

  /** Takes the next chunk. @throws RefusalError `invalid` for a header that does not hold. */
  push(chunk: Buffer): void {
    if (this.#records) this.#records.push(chunk);
    else this.#records = recordsFrom(chunk);
    this.#read(this.#records);
    // More than any header has.
    if (!this.#columns && chunk.length === FILE_CHUNK_BYTES) columnsOf({ fault: 'has more than 16 KiB' });
  }

  /** What the file has. @throws RefusalError `invalid` for a header that does not hold, or none. */
  end(): FileFacts {
    this.#records?.end();
    if (this.#records) this.#read(this.#records);
    return { columns: this.#columns ?? columnsOf(undefined), position: this.#position, rows: this.#rows };
  }

  #read(records: CsvRecords): void {
    if (!this.#columns) {
      const header = records.take();
      if (!header) return;
      this.#columns = columnsOf(header);
      records.columns = this.#columns.length;
      this.#position = records.position;
    }
    while (records.skip()) this.#rows += 1;
  }
}

/** The records of a file that begins with this chunk, behind a byte order mark. */
function recordsFrom(chunk: Buffer): CsvRecords {
  const start = chunk.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK.length : 0;
  const records = new CsvRecords(start);
  records.push(chunk.subarray(start));
  return records;
}

/** The bytes of a stream in chunks of one size, the last one as it comes. It holds one of them. */
async function* chunksOf(source: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let chunk = Buffer.allocUnsafeSlow(FILE_CHUNK_BYTES);
  let filled = 0;
  for await (const part of source) {
    for (let from = 0; from < part.length; ) {
      const piece = part.subarray(from, from + FILE_CHUNK_BYTES - filled);
      chunk.set(piece, filled);
      filled += piece.length;
      from += piece.length;
      if (filled < FILE_CHUNK_BYTES) continue;
      yield chunk;
      chunk = Buffer.allocUnsafeSlow(FILE_CHUNK_BYTES);
      filled = 0;
    }
  }
  if (filled > 0) yield chunk.subarray(0, filled);
}

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
  readonly #store: MigrationStore;
  readonly #pages: MigrationPages;

  constructor(parts: MigrationFilesParts) {
    this.#parts = parts;
    this.#store = new MigrationStore(parts.db);
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
  ): Promise<MigrationTableRow> {
    const { nowMs, notify } = this.#parts;
    const atMs = nowMs();
    const id = uuidV7(atMs);
    try {
      const facts = await this.#keep(caller.nodeId, id, source);
      const migration = await this.#store.recordFile({ ...caller, ...facts, id, atMs, lease: lease?.() });
      notify();
      return migration;
    } catch (error) {
      // What cannot be deleted now is swept later.
      await this.#store.dropFile(caller.nodeId, id).catch(() => undefined);
      throw error;
    }
  }

  /**
   * Ends a migration before its last row; what was applied stays. Once more changes nothing.
   * @throws RefusalError `not_found`, or `precondition` for a migration that is done or has failed.
   */
  async cancel(nodeId: string, id: string): Promise<MigrationTableRow> {
    return this.#parts.db.transaction(async () => {
      const job = isUuid(id) ? await this.#store.lock(nodeId, id) : undefined;
      if (job) return this.#store.finish(job, 'cancelled', this.#parts.nowMs());
      const migration = await this.#pages.find(nodeId, id);
      if (!migration) throw notFoundRefusal();
      if (migration.status === 'cancelled') return migration;
      const message = `the migration has ended already: it is ${migration.status}`;
      throw new RefusalError({ kind: 'precondition', message });
    });
  }

  /** How far a migration of the node is; undefined where there is none with this id. */
  async progress(nodeId: string, id: string): Promise<MigrationProgressRow | undefined> {
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

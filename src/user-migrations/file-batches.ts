import { CsvRecords } from './csv-records.rules.ts';
import { type FileRow, fileRowOf } from './csv-rows.rules.ts';
import { MAX_BULK_ROWS } from './migration.input.ts';
import { FILE_CHUNK_BYTES, type MigrationFileStore } from './migration-file-store.ts';
import type { MigrationJobRow } from './migration-job-store.ts';

/** The next rows of a file. */
export interface FileBatch {
  /** Where its first row begins, and where the next batch does. */
  from: number;
  to: number;
  rows: FileRow[];
  /** The index of the row after it. */
  nextIndex: number;
  isLast: boolean;
}

/** Rows of long records are fewer. */
const MAX_BATCH_BYTES = 512 * 1024;

/** Reads the file of a job in batches, from where the job is on. It holds two chunks at most. */
export class FileBatches {
  readonly #store: MigrationFileStore;
  readonly #job: MigrationJobRow;
  readonly #columns: readonly string[];
  readonly #records: CsvRecords;
  #nextIndex: number;
  #seq: number;
  /** What of the next chunk lies before the job's position. */
  #passed: number;
  #isEnded = false;

  constructor(store: MigrationFileStore, job: MigrationJobRow) {
    const position = Number(job.byte_position);
    this.#store = store;
    this.#job = job;
    this.#columns = job.columns.split(',');
    this.#records = new CsvRecords(position, this.#columns.length);
    this.#nextIndex = job.next_index;
    this.#seq = Math.floor(position / FILE_CHUNK_BYTES);
    this.#passed = position % FILE_CHUNK_BYTES;
  }

  /** The next batch; without rows only where the file has no more. */
  async read(): Promise<FileBatch> {
    const from = this.#records.position;
    const rows: FileRow[] = [];
    for (;;) {
      const record = this.#records.take();
      if (record) {
        rows.push(fileRowOf(record, this.#columns, this.#nextIndex));
        this.#nextIndex += 1;
        const isFull = rows.length === MAX_BULK_ROWS || this.#records.position - from >= MAX_BATCH_BYTES;
        if (isFull) return this.#batch(from, rows, false);
      } else if (this.#isEnded) return this.#batch(from, rows, true);
      else await this.#readChunk();
    }
  }

  #batch(from: number, rows: FileRow[], isLast: boolean): FileBatch {
    return { from, to: this.#records.position, rows, nextIndex: this.#nextIndex, isLast };
  }

  async #readChunk(): Promise<void> {
    const chunk = await this.#store.chunk(this.#job.node_id, this.#job.migration_id, this.#seq);
    if (!chunk) {
      this.#isEnded = true;
      this.#records.end();
      return;
    }
    this.#records.push(chunk.subarray(this.#passed));
    this.#passed = 0;
    this.#seq += 1;
  }
}

import { setImmediate as nextTurn } from 'node:timers/promises';
import { CsvRecords, type FileRow, fileRowOf } from './csv.rules.ts';
import { MAX_BULK_ROWS } from './migration.input.ts';
import { FILE_CHUNK_BYTES, type MigrationJobRow, type MigrationStore, type RowOutcomeRow } from './migrations.store.ts';
import { faultRowOf } from './row-application.service.ts';

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

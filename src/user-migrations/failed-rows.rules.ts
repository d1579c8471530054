import type { RowRecord } from './migration-store.ts';
import { faultRecordOf } from './row-records.rules.ts';

/**
 * What PostgreSQL stores of a failed row beside its texts: 79 bytes in the table (header, both ids, index, status, how
 * long the texts are) and 41 in the index, as measured.
 */
export const FAILED_ROW_BYTES = 120;
/** The failed rows of a file may take so much whatever its size, so that a small one is told of to its end. */
const FREE_BYTES = 1_000_000;
/** A line that takes more by failing has fewer than 24 bytes, or 28 where U+0000 identifies it: each is kept as three. */
const STORED_PER_READ = 10;

/** What storing the failed ones among these rows takes, in bytes. */
export function failedBytesOf(records: readonly RowRecord[]): number {
  const failed = records.filter(({ status }) => status === 'failed');
  return failed.reduce(
    (sum, { email, externalId, reason }) =>
      sum + FAILED_ROW_BYTES + bytesOf(email) + bytesOf(externalId) + bytesOf(reason),
    0,
  );
}

/** Whether the failed rows of a file take more room than so many bytes read of it may make. */
export function isTooMuch(failedBytes: number, readBytes: number): boolean {
  return failedBytes > Math.max(FREE_BYTES, STORED_PER_READ * readBytes);
}

/** The row at which a migration ends for that: neither it nor what follows was applied. */
export function endRecordOf(index: number): RowRecord {
  const why = `its failed rows would take more than ${STORED_PER_READ} times the bytes read of the file`;
  const fault = `line ${index}: the migration has ended here: ${why}`;
  return faultRecordOf({ index, fault, email: undefined, externalId: undefined });
}

function bytesOf(text: string | null): number {
  return text === null ? 0 : Buffer.byteLength(text);
}

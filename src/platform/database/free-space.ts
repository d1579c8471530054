import { statfsSync } from 'node:fs';

/**
 * What the embedded database must find free before it writes: a segment of its write-ahead log (16 MiB) and some rows.
 * Where it cannot make a segment it does not fail, it never returns.
 */
const NEEDED_BYTES = 20 * 1024 * 1024;
/** How a statement begins that only reads, or that ends a transaction; and the words by which it writes after all, locks included. */
const READS = /^\s*(?:select|with|show|begin|start|commit|rollback|savepoint|release|set)\b/i;
const WRITES = /\b(?:insert|update|delete|merge|for\s+(?:key\s+)?share)\b/i;

/** Says that the disk is too full for another write. `code` is the SQLSTATE that PostgreSQL gives for it. */
export class DiskFullError extends Error {
  override name = 'DiskFullError';
  readonly code = '53100';
}

/** Checks that the disk of a folder has room for the embedded database to write. @throws DiskFullError where it has not. */
export function checkFreeSpace(folder: string): void {
  const { bavail, bsize } = statfsSync(folder);
  if (bavail * bsize >= NEEDED_BYTES) return;
  throw new DiskFullError(`the disk of ${folder} has less than ${NEEDED_BYTES / 1024 / 1024} MiB left: make room`);
}

/** Runs the statements of a connection, as Kysely's connections do. */
export interface Executor {
  executeQuery(query: { sql: string }, ...rest: unknown[]): Promise<unknown>;
}

/** Refuses every statement but reads with what `check` throws; a transaction that has begun can still be ended. */
export function refuseWhenFull(connection: Executor, check: () => void): void {
  const execute = connection.executeQuery.bind(connection);
  connection.executeQuery = async (query, ...rest) => {
    if (!READS.test(query.sql) || WRITES.test(query.sql)) check();
    return execute(query, ...rest);
  };
}

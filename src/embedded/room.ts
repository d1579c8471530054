import { statfsSync } from 'node:fs';

/**
 * What the embedded database must find free before it writes: a segment of its write-ahead log (16 MiB) and some rows.
 * Where it cannot make a segment it does not fail, it never returns.
 */
const NEEDED_BYTES = 20 * 1024 * 1024;
/** How a statement begins that only reads, or ends what has begun; and what in it writes after all, locks included. */
const READS = /^\s*(?:select|with|show|begin|start|commit|rollback|savepoint|release|set)\b/i;
const WRITES = /\b(?:insert|update|delete|merge|for\s+(?:key\s+)?share)\b/i;

/** The disk has no room for another write. Its code is the SQLSTATE that PostgreSQL has for it. */
export class DiskFullError extends Error {
  override name = 'DiskFullError';
  readonly code = '53100';
}

/** @throws DiskFullError where the disk that a folder is on has too little room for the embedded database to write. */
export function checkRoom(folder: string): void {
  const { bavail, bsize } = statfsSync(folder);
  if (bavail * bsize >= NEEDED_BYTES) return;
  throw new DiskFullError(`the disk of ${folder} has less than ${NEEDED_BYTES / 1024 / 1024} MiB left: make room`);
}

/** What runs the statements of a connection. */
export interface Executor {
  executeQuery(query: { sql: string }, ...rest: unknown[]): Promise<unknown>;
}

/** Lets nothing but reads pass while `check` throws; what was begun can still be ended. */
export function refuseWithoutRoom(connection: Executor, check: () => void): void {
  const execute = connection.executeQuery.bind(connection);
  connection.executeQuery = async (query, ...rest) => {
    if (!READS.test(query.sql) || WRITES.test(query.sql)) check();
    return execute(query, ...rest);
  };
}

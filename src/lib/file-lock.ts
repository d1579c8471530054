import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';

const SQLITE_BUSY = 5;
const SQLITE_CANTOPEN = 14;

/**
 * A lock that the kernel holds for a living process and frees when it ends, however it ends: unlike a file with a
 * process id it survives neither SIGKILL nor the id's reuse, and it tells containers apart that share a folder.
 * Node has no advisory locks of its own; SQLite takes one (fcntl, all POSIX systems) on an empty file.
 * The file must never be opened by other means in the holding process: closing it would drop the lock.
 */
export class FileLock {
  readonly #path: string;
  readonly #database: DatabaseSync;

  private constructor(path: string, database: DatabaseSync) {
    this.#path = path;
    this.#database = database;
  }

  /** Creates the file and locks it; undefined when another one came between. */
  static create(path: string): FileLock | undefined {
    if (!existsSync(path)) createFile(path);
    const lock = FileLock.tryAcquire(path);
    // Whoever looked for leftovers may have locked and removed the file before it was locked here.
    if (lock === undefined || existsSync(path)) return lock;
    lock.release();
    return undefined;
  }

  /** Locks an existing file; undefined when a living process holds it, this one included, or it is gone. */
  static tryAcquire(path: string): FileLock | undefined {
    const url = pathToFileURL(path);
    url.searchParams.set('mode', 'rw');
    let database: DatabaseSync | undefined;
    try {
      database = new DatabaseSync(url, { timeout: 0 });
      database.exec('BEGIN EXCLUSIVE');
      return new FileLock(path, database);
    } catch (error) {
      database?.close();
      if (isSqliteError(error, SQLITE_BUSY) || isSqliteError(error, SQLITE_CANTOPEN)) return undefined;
      throw error;
    }
  }

  /** Lets others take the lock; the file stays. */
  release(): void {
    this.#database.close();
  }

  /** Removes the file, while it is still held, and lets go. */
  remove(): void {
    rmSync(this.#path, { force: true });
    this.#database.close();
  }
}

function createFile(path: string): void {
  try {
    writeFileSync(path, '', { flag: 'wx', mode: 0o600 });
  } catch (error) {
    // Another process was faster: the lock decides.
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  }
}

function isSqliteError(error: unknown, code: number): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === code;
}

import { chmodSync, existsSync, mkdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';

/**
 * Creates a folder and its missing parents; an existing folder is left as it is. It replaces Node's own recursive
 * option, which never returns where a file system refuses new folders with ENOENT, as /proc does.
 * @throws the system's error.
 */
export function makeFolder(path: string, mode?: number): void {
  try {
    mkdirSync(path, mode);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'EEXIST' && statSync(path).isDirectory()) return;
    const parent = dirname(path);
    if (code !== 'ENOENT' || parent === path || existsSync(parent)) throw error;
    makeFolder(parent, mode);
    mkdirSync(path, mode);
  }
}

/**
 * Writes or replaces a file atomically: readers see either the old or the new content. Only its owner may read it (mode
 * 0600).
 */
export function writeWhole(path: string, content: string | Buffer): void {
  const unfinished = `${path}.${process.pid}`;
  writeFileSync(unfinished, content, { mode: 0o600 });
  chmodSync(unfinished, 0o600);
  renameSync(unfinished, path);
}

/** SQLite's codes for a lock that another holds, and for a file that does not exist: SQLITE_BUSY, SQLITE_CANTOPEN. */
const NOT_LOCKED: readonly unknown[] = [5, 14];

/**
 * A kernel lock on a file, released when the process that holds it ends, for any reason. Unlike a file with a
 * process id it is correct after SIGKILL, after the reuse of an id, and between containers that share a folder. Node
 * has no API for such locks, but SQLite takes one on an empty file (fcntl, on all POSIX systems). The holding process
 * must not open the file in any other way: closing it would release the lock.
 */
export class FileLock {
  readonly #path: string;
  readonly #database: DatabaseSync;

  private constructor(path: string, database: DatabaseSync) {
    this.#path = path;
    this.#database = database;
  }

  /**
   * Creates the file if it does not exist and locks it. Returns undefined if another process has locked or removed it
   * meanwhile.
   */
  static create(path: string): FileLock | undefined {
    if (!existsSync(path)) writeFileSync(path, '', { flag: 'a', mode: 0o600 });
    const lock = FileLock.tryAcquire(path);
    // A process that removes abandoned files may have locked and removed this one before it was locked here.
    if (lock === undefined || existsSync(path)) return lock;
    lock.release();
    return undefined;
  }

  /**
   * Locks an existing file. Returns undefined if a living process (including this one) holds the lock, or if the file
   * does not exist.
   */
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
      if (error instanceof Error && 'errcode' in error && NOT_LOCKED.includes(error.errcode)) return undefined;
      throw error;
    }
  }

  /** Releases the lock and keeps the file. */
  release(): void {
    this.#database.close();
  }

  /** Removes the file, then releases the lock. */
  remove(): void {
    rmSync(this.#path, { force: true });
    this.#database.close();
  }
}

import { accessSync, chmodSync, constants, mkdtempSync, readdirSync, rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';

const MEMORY = '/dev/shm';
/** What the databases, the broker and the folders of a run take at most, several times over. */
const NEEDED_BYTES = 4 * 2 ** 30;
/** The folder of a run, named after its process. */
const RUN = /^portcullis-(\d+)-/;

/**
 * Puts the temporary files of this process and its children into memory, where the system has such a folder with room:
 * each database is a thousand files that are made and deleted again, and a disk's file system is slow at that. They go
 * with this process, or with the next run after one that was killed. A TMPDIR that is set stays.
 */
export function useMemoryFolder(): void {
  if (process.env.TMPDIR !== undefined) return;
  try {
    accessSync(MEMORY, constants.W_OK);
    const dead = readdirSync(MEMORY).filter((name) => !isAlive(Number(RUN.exec(name)?.[1] ?? process.pid)));
    for (const name of dead) remove(join(MEMORY, name));
    const { bavail, bsize } = statfsSync(MEMORY);
    if (bavail * bsize < NEEDED_BYTES) return;
    const folder = mkdtempSync(join(MEMORY, `portcullis-${process.pid}-`));
    // PostgreSQL refuses to run as root.
    chmodSync(folder, 0o711);
    process.env.TMPDIR = folder;
    process.on('exit', () => remove(folder));
  } catch {
    // Other systems have none.
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

function remove(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true });
  } catch {
    // Somebody else's, or a process that ends writes to it.
  }
}

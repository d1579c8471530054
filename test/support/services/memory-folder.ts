import { accessSync, constants, statfsSync } from 'node:fs';

const MEMORY = '/dev/shm';
/** What the databases, the broker and the folders of a run take at most, several times over. */
const NEEDED_BYTES = 4 * 2 ** 30;

/**
 * Puts the temporary files of this process and its children into memory, where the system has such a folder with room:
 * each database is a thousand files that are made and deleted again, and a disk's file system is slow at that. A TMPDIR
 * that is set stays.
 */
export function useMemoryFolder(): void {
  if (process.env.TMPDIR !== undefined) return;
  try {
    accessSync(MEMORY, constants.W_OK);
    const { bavail, bsize } = statfsSync(MEMORY);
    if (bavail * bsize >= NEEDED_BYTES) process.env.TMPDIR = MEMORY;
  } catch {
    // Other systems have none.
  }
}

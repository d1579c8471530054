import { chmodSync, existsSync, mkdirSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

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

import { chmodSync, renameSync, writeFileSync } from 'node:fs';

/** Writes a file that its owner alone may read (mode 0600), in the place of one that is there: whoever reads it sees one or the other. */
export function writeWhole(path: string, text: string): void {
  const unfinished = `${path}.${process.pid}`;
  writeFileSync(unfinished, text, { mode: 0o600 });
  chmodSync(unfinished, 0o600);
  renameSync(unfinished, path);
}

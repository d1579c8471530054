/**
 * A disk that loses what was not synced, for a process: imported before everything else, it keeps in the folder `SHADOW_TO` a copy of the
 * folder `SHADOW_FROM` as a machine would find it after its power was cut. A file is in the copy once its folder was synced with its name
 * in it, with what it held when the last sync of it began that has succeeded. No segment is removed, as if its lines were not in the
 * database yet.
 */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { basename, dirname, join } from 'node:path';

/** So that an answer that does not wait for the disk comes before it. */
const SLOW_MS = 20;

const { SHADOW_FROM: from = '', SHADOW_TO: to = '' } = process.env;
const { closeSync, fdatasync, fsync, openSync, rmSync } = fs;
const paths = new Map<number, string>();
const synced = new Map<string, Buffer>();
const named = new Set<string>();

fs.openSync = ((path: string, flags?: fs.OpenMode, mode?: fs.Mode) => {
  const fd = openSync(path, flags ?? 'r', mode);
  paths.set(fd, path);
  return fd;
}) as typeof fs.openSync;

fs.closeSync = (fd) => {
  paths.delete(fd);
  closeSync(fd);
};

fs.rmSync = (path, options) => {
  if (!String(path).endsWith('.seg')) rmSync(path, options);
};

fs.fdatasync = ((fd: number, done: fs.NoParamCallback) => {
  const path = paths.get(fd) ?? '';
  const content = fs.readFileSync(path);
  later(
    done,
    (onSynced) => fdatasync(fd, onSynced),
    () => {
      if (dirname(path) === from) synced.set(path, content);
    },
  );
}) as typeof fs.fdatasync;

fs.fsync = ((fd: number, done: fs.NoParamCallback) => {
  const path = paths.get(fd) ?? '';
  const names = path === from ? fs.readdirSync(path) : [];
  later(
    done,
    (onSynced) => fsync(fd, onSynced),
    () => {
      for (const name of names) named.add(join(path, name));
    },
  );
}) as typeof fs.fsync;

function later(done: fs.NoParamCallback, sync: (onSynced: fs.NoParamCallback) => void, keep: () => void): void {
  sync((error) => {
    setTimeout(() => {
      if (!error) keep();
      for (const [path, content] of synced) if (named.has(path)) fs.writeFileSync(join(to, basename(path)), content);
      done(error);
    }, SLOW_MS);
  });
}

syncBuiltinESMExports();

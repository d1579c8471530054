import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import { cacheFolder } from './folders.ts';

const LOCK_POLL_MS = 100;
const UNFINISHED = 'making-';

/**
 * The path of an entry of the cache, made by `make` if it is absent: `make` fills the folder it is given and names the
 * file or folder in it that becomes the entry. An entry appears whole or not at all, and is made by one process at a
 * time.
 */
export async function cached(name: string, make: (folder: string) => Promise<string>): Promise<string> {
  const entry = join(cacheFolder(), name);
  if (existsSync(entry)) return entry;
  await mkdir(dirname(entry), { recursive: true });
  using _lock = await cacheLock();
  if (existsSync(entry)) return entry;
  await sweep();
  const folder = await mkdtemp(join(cacheFolder(), UNFINISHED));
  try {
    await rename(await make(folder), entry);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return entry;
}

/** Under the lock nobody else makes anything: what is unfinished was left by a process that died. */
async function sweep(): Promise<void> {
  for (const name of await readdir(cacheFolder())) {
    if (name.startsWith(UNFINISHED)) await rm(join(cacheFolder(), name), { recursive: true, force: true });
  }
}

/** An exclusive lock of SQLite: unlike a lock file, the system releases it when its holder dies. */
async function cacheLock(): Promise<Disposable> {
  const database = new DatabaseSync(join(cacheFolder(), 'lock.sqlite'));
  database.exec('PRAGMA busy_timeout = 0');
  for (;;) {
    try {
      database.exec('BEGIN EXCLUSIVE');
      return { [Symbol.dispose]: () => database.close() };
    } catch (error) {
      if (!(error instanceof Error && /locked|busy/i.test(error.message))) {
        database.close();
        throw error;
      }
      await delay(LOCK_POLL_MS);
    }
  }
}

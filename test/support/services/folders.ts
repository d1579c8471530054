import { chmod, mkdtemp, realpath, stat } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

const OTHERS_MAY_ENTER = 0o001;

/**
 * A new temporary folder. As root it is one that other users can pass through, all its parents included, since
 * PostgreSQL refuses to run as root.
 */
export async function temporaryFolder(): Promise<string> {
  const isRoot = process.getuid?.() === 0;
  const base = await realpath(tmpdir());
  const open = !isRoot || (await everyoneMayPass(base));
  const folder = await mkdtemp(join(open ? base : '/tmp', 'portcullis-test-'));
  if (isRoot) await chmod(folder, 0o711);
  return folder;
}

async function everyoneMayPass(folder: string): Promise<boolean> {
  const { mode } = await stat(folder);
  if ((mode & OTHERS_MAY_ENTER) === 0) return false;
  const parent = dirname(folder);
  return parent === folder || everyoneMayPass(parent);
}

/** The folder in which the tests keep what they fetched: `${XDG_CACHE_HOME:-~/.cache}/portcullis-test`. */
export function cacheFolder(): string {
  const base = process.env.XDG_CACHE_HOME;
  return join(base === undefined || base === '' ? join(homedir(), '.cache') : base, 'portcullis-test');
}

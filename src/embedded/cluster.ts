import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { glob, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { embeddedClusterDir } from '../config/data-dir.ts';
import { StartError } from '../errors/start-error.ts';

const CHILD = join(import.meta.dirname, 'create-cluster.ts');

/**
 * Makes the embedded database where there is none yet. A child process does it, since initialising in this one would
 * keep some 100 MB for good; it works beside the final place, so that a kill leaves nothing half made.
 */
export async function ensureCluster(dataDir: string): Promise<{ created: boolean }> {
  const cluster = embeddedClusterDir(dataDir);
  if (existsSync(cluster)) return { created: false };
  // A folder of its own each time: after a kill the child of the previous start may still be writing to another one.
  for await (const left of glob('postgres.unfinished-*', { cwd: dataDir })) {
    // It is in nobody's way: one that cannot be removed yet is removed by a later start.
    await rm(join(dataDir, left), { recursive: true, force: true, maxRetries: 3 }).catch(() => undefined);
  }
  let unfinished = await makeCluster(cluster);
  // What ends this process once it has started may have been sent to the child as well; it is then made once more.
  unfinished ??= await makeCluster(cluster);
  if (unfinished === undefined) throw new StartError('the embedded database could not be made: it was interrupted');
  await rename(unfinished, cluster);
  return { created: true };
}

/** Gives the folder that a child has made the cluster in; undefined where SIGINT or SIGTERM ended the child. */
async function makeCluster(cluster: string): Promise<string | undefined> {
  const dir = await mkdtemp(`${cluster}.unfinished-`);
  // In a group of its own: Ctrl-C in a terminal is for the process that decides what it ends. Until it has one, it gets it too.
  const child = spawn(process.execPath, [CHILD, dir], { stdio: ['pipe', 'ignore', 'pipe'], detached: true });
  let complaint = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaint += text;
  });
  const { promise, resolve, reject } = Promise.withResolvers<{ code: number | null; signal: NodeJS.Signals | null }>();
  child.once('error', reject).once('close', (code, signal) => resolve({ code, signal }));
  const { code, signal } = await promise;
  if (code === 0) return dir;
  await rm(dir, { recursive: true, force: true });
  if (signal === 'SIGINT' || signal === 'SIGTERM') return undefined;
  throw new StartError(`the embedded database could not be made: ${complaint.trim() || `exit ${code ?? signal}`}`);
}

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { statfsSync } from 'node:fs';
import { appendFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { emptyFolder } from './folders.ts';

const MOUNT = 'mount -t tmpfs -o size="$1" portcullis "$0" && echo ready && exec cat';

/** A small disk that only processes started `through` it see; this process reaches its files by `path`. */
export interface SmallDisk extends AsyncDisposable {
  path: string;
  /** Where those processes see it, and the command that starts them. */
  inside: string;
  through: string[];
  /** Fills it but for so many bytes, with one file; again, what has become free since. */
  fill(leave: number): Promise<void>;
  empty(): Promise<void>;
}

/** Why there can be no small disk here; undefined where there can. */
export function whyNoSmallDisk(): string | undefined {
  try {
    execFileSync('unshare', ['-m', 'sh', '-c', 'mount -t tmpfs portcullis /mnt'], { stdio: 'ignore' });
    return undefined;
  } catch {
    return 'a memory file system cannot be mounted in a namespace of its own';
  }
}

export async function smallDisk(bytes: number): Promise<SmallDisk> {
  await using stack = new AsyncDisposableStack();
  const folder = stack.use(await emptyFolder());
  // It holds the namespace until its standard input ends, with this process at the latest.
  const holder = spawn('unshare', ['-m', 'sh', '-c', MOUNT, folder.path, `${bytes}`], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  stack.defer(async () => {
    const gone = once(holder, 'exit');
    holder.stdin.end();
    await gone;
  });
  await once(holder.stdout, 'data');
  const path = `/proc/${holder.pid}/root${folder.path}`;
  const filler = join(path, 'filler');
  const held = stack.move();
  return {
    path,
    inside: folder.path,
    through: ['nsenter', '--mount', '--target', `${holder.pid}`, '--wd=.'],
    async fill(leave) {
      const { bavail, bsize } = statfsSync(path);
      await appendFile(filler, Buffer.alloc(Math.max(0, bavail * bsize - leave)));
    },
    empty: () => rm(filler),
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  };
}

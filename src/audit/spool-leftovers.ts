import { readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { FileLock } from '../lib/file-lock.ts';
import type { Batch } from './spool-log.ts';
import { type BatchLimits, SegmentChain } from './spool-segments.ts';

const SEGMENT_NAME = /^([0-9a-z-]+)\.\d{8}\.seg$/;
const LOCK_NAME = /^([0-9a-z-]+)\.lock$/;

/** What a dead process left: its segments, under its lock. One that is empty, or gone meanwhile, is none. */
export class Leftover {
  readonly #lock: FileLock;
  readonly #chain = new SegmentChain();

  constructor(lock: FileLock, paths: string[]) {
    this.#lock = lock;
    for (const path of paths) {
      const bytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
      if (bytes > 0) this.#chain.add({ path, bytes });
      else rmSync(path, { force: true });
    }
  }

  get bytesOnDisk(): number {
    return this.#chain.bytesOnDisk;
  }

  get bytesLeft(): number {
    return this.#chain.bytesLeft;
  }

  next(limits: BatchLimits): Batch {
    const { lines, damaged, bytes } = this.#chain.read(limits);
    return { lines, damaged, done: () => this.#chain.advance(bytes) };
  }

  /** Lets go; what is left stays for the next process, and without any rest the lock's file goes too. */
  close(): void {
    this.#chain.closeReader();
    if (this.bytesLeft === 0) this.#lock.remove();
    else this.#lock.release();
  }
}

export function lockPath(dir: string, owner: string): string {
  return join(dir, `${owner}.lock`);
}

export function segmentPath(dir: string, owner: string, sequence: number): string {
  return join(dir, `${owner}.${String(sequence).padStart(8, '0')}.seg`);
}

/** Takes over what dead processes left in `dir`, the oldest first. */
export function adoptLeftovers(dir: string): Leftover[] {
  const names = readdirSync(dir);
  const owners = new Set(names.map((name) => (SEGMENT_NAME.exec(name) ?? LOCK_NAME.exec(name))?.[1] ?? ''));
  owners.delete('');
  return [...owners].sort().flatMap((owner) => adopt(dir, owner, names) ?? []);
}

function adopt(dir: string, owner: string, names: string[]): Leftover | undefined {
  const path = lockPath(dir, owner);
  // Segments whose lock somebody deleted are adopted under a new one.
  const lock = names.includes(`${owner}.lock`) ? FileLock.tryAcquire(path) : FileLock.create(path);
  if (lock === undefined) return undefined;
  // Listed again under the lock: another process may have been through with them in between.
  const segments = readdirSync(dir).filter((name) => SEGMENT_NAME.exec(name)?.[1] === owner);
  const leftover = new Leftover(
    lock,
    segments.sort().map((name) => join(dir, name)),
  );
  if (leftover.bytesLeft > 0) return leftover;
  leftover.close();
  return undefined;
}

import { randomBytes } from 'node:crypto';
import { readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { FileLock } from '../lib/file-lock.ts';
import { makeFolder } from '../lib/files.ts';
import { Semaphore } from '../lib/semaphore.ts';
import { type BatchLimits, SegmentChain, type SpoolBatch, SpoolLog } from './spool-log.ts';

const SEGMENT_NAME = /^([0-9a-z-]+)\.\d{8}\.seg$/;
const LOCK_NAME = /^([0-9a-z-]+)\.lock$/;

/** What a dead process left: its segments, under its lock. One that is empty, or gone meanwhile, is none. */
class Leftover extends SegmentChain {
  readonly #lock: FileLock;

  constructor(lock: FileLock, paths: string[]) {
    super();
    this.#lock = lock;
    for (const path of paths) {
      const bytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
      if (bytes > 0) this.add({ path, bytes });
      else rmSync(path, { force: true });
    }
  }

  next(limits: BatchLimits): SpoolBatch {
    const { lines, damaged, bytes } = this.read(limits);
    return { lines, damaged, done: () => this.advance(bytes) };
  }

  close(): void {
    this.closeReader();
    letGo(this.#lock, this.bytesLeft);
  }
}

/** Lets go of a folder; what is left stays for the next process, and where nothing is left the lock's file is removed too. */
function letGo(lock: FileLock, bytesLeft: number): void {
  if (bytesLeft === 0) lock.remove();
  else lock.release();
}

function lockPath(dir: string, owner: string): string {
  return join(dir, `${owner}.lock`);
}

export function segmentPath(dir: string, owner: string, sequence: number): string {
  return join(dir, `${owner}.${String(sequence).padStart(8, '0')}.seg`);
}

/** Takes over what dead processes left in `dir`, the oldest first. */
function adoptLeftovers(dir: string): Leftover[] {
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

export type AuditSpoolOptions = {
  /** Created when absent. Several processes may share it. */
  dir: string;
  /** The most that this process keeps on disk, with what it adopted: 1 GiB. */
  maxBytes?: number;
  segmentBytes?: number;
  memoryBytes?: number;
};

type DrainOptions = { batchSize: number; batchBytes?: number; signal?: AbortSignal };

const MIB = 1024 * 1024;
// Requests that were let in before the spool was full may still append: one sixteenth is theirs.
const RESERVE_DIVISOR = 16;
const DISK_FULL_CODES = ['ENOSPC', 'EDQUOT'];

/** The spool, or the disk below it, has no room for a line. */
export class SpoolFullError extends Error {
  override readonly name = 'SpoolFullError';
  readonly code = 'spool_full';

  constructor(options?: ErrorOptions) {
    super('the audit spool is full', options);
  }
}

/**
 * Lines on their way to the database, in files that outlive the process: a line is in the page cache when `append`
 * returns, and is given to a writer at least once, by this process or, after its end, by another one on the folder.
 */
export class AuditSpool {
  readonly #dir: string;
  readonly #maxBytes: number;
  readonly #lock: FileLock;
  readonly #log: SpoolLog;
  #leftovers: Leftover[] = [];
  #isDiskFull = false;
  #isClosed = false;
  #damagedLines = 0;
  #waitingSinceTick = 0;
  readonly #draining = new Semaphore({ permits: 1 });
  #listener: () => void = () => {};

  private constructor(options: AuditSpoolOptions) {
    const { dir, maxBytes = 1024 * MIB, segmentBytes = 8 * MIB, memoryBytes = 8 * MIB } = options;
    this.#dir = dir;
    this.#maxBytes = maxBytes;
    const { owner, lock } = register(dir);
    this.#lock = lock;
    this.#log = new SpoolLog({
      segmentPath: (sequence) => segmentPath(dir, owner, sequence),
      segmentBytes,
      memoryBytes,
    });
  }

  /** Opens the spool and adopts what dead processes left in the folder. Throws the system's errors. */
  static open(options: AuditSpoolOptions): AuditSpool {
    makeFolder(options.dir, 0o700);
    const spool = new AuditSpool(options);
    spool.adopt();
    return spool;
  }

  /**
   * No new request should be let in. Of a full disk it is known from the first append that fails, until a drain finds room
   * again: the requests of that append have been let in, and get their responses though their lines are lost.
   */
  get isFull(): boolean {
    return this.#isDiskFull || this.bytesOnDisk >= this.#maxBytes - Math.floor(this.#maxBytes / RESERVE_DIVISOR);
  }

  get bytesOnDisk(): number {
    return this.#leftovers.reduce((sum, leftover) => sum + leftover.bytesOnDisk, this.#log.bytesOnDisk);
  }

  /** Bytes of lines that no writer has taken yet. */
  get pendingBytes(): number {
    return this.#leftovers.reduce((sum, leftover) => sum + leftover.bytesLeft, this.#log.bytesLeft);
  }

  /** Lines of this process that no writer has taken yet. */
  get pendingLines(): number {
    return this.#log.pendingLines;
  }

  /** Lines that were torn by a crash, or damaged, and skipped. */
  get damagedLines(): number {
    return this.#damagedLines;
  }

  /** How many milliseconds lines have waited since the last one was taken; 0 where none waits. */
  get waitedMs(): number {
    return this.pendingBytes > 0 ? performance.now() - this.#waitingSinceTick : 0;
  }

  /** `listener` is called after each append, also one that found the disk full, until it is replaced. */
  onAppend(listener: () => void): void {
    this.#listener = listener;
  }

  /**
   * Keeps lines (without a line feed) before it returns, by one write. Throws SpoolFullError over `maxBytes` or on a full
   * disk, and then none of them is stored.
   */
  append(...lines: string[]): void {
    if (this.#isClosed) throw new Error('the audit spool is closed');
    if (this.pendingBytes === 0) this.#waitingSinceTick = performance.now();
    const leftoverBytes = this.bytesOnDisk - this.#log.bytesOnDisk;
    try {
      if (!this.#log.append(lines, this.#maxBytes - leftoverBytes)) throw new SpoolFullError();
    } catch (error) {
      if (!isDiskFull(error)) throw error;
      this.#isDiskFull = true;
      this.#listener();
      throw new SpoolFullError({ cause: error });
    }
    this.#listener();
  }

  /** Takes over what processes that ended meanwhile left in the folder; how many they were. */
  adopt(): number {
    if (this.pendingBytes === 0) this.#waitingSinceTick = performance.now();
    const adopted = adoptLeftovers(this.#dir);
    this.#leftovers.push(...adopted);
    return adopted.length;
  }

  /**
   * Gives all lines to `write`, in their order (those of dead processes first), one batch at a time, and resolves to
   * their number. Rejects with the error of `write`; its batch is given again next time. Drains run one after another.
   * Each looks whether a disk that was full has room again, also when there is no line to give.
   */
  drain(write: (lines: string[]) => Promise<void>, options: DrainOptions): Promise<number> {
    return this.#draining.run(undefined, () => this.#drain(write, options));
  }

  /** Lets go of the folder. Lines that were not written stay for the next process. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#log.close();
    for (const leftover of this.#leftovers) leftover.close();
    letGo(this.#lock, this.#log.bytesLeft);
  }

  async #drain(write: (lines: string[]) => Promise<void>, options: DrainOptions): Promise<number> {
    const { batchSize, batchBytes = 4 * MIB } = options;
    // A batch of nothing would never come to an end.
    const limits = { maxLines: Math.max(batchSize, 1), maxBytes: Math.max(batchBytes, 1) };
    let count = 0;
    // What is appended in the same tick of the event loop goes into the first batch.
    await undefined;
    while (!this.#isClosed && options.signal?.aborted !== true) {
      if (this.#isDiskFull) this.#isDiskFull = !this.#log.hasRoom();
      const batch = this.#next(limits);
      if (batch === undefined) break;
      if (batch.lines.length > 0) await write(batch.lines);
      if (this.#isClosed) break;
      batch.done();
      this.#waitingSinceTick = performance.now();
      this.#damagedLines += batch.damaged;
      count += batch.lines.length;
    }
    return count;
  }

  #next(limits: BatchLimits): SpoolBatch | undefined {
    for (let first = this.#leftovers[0]; first !== undefined; first = this.#leftovers[0]) {
      if (first.bytesLeft > 0) return first.next(limits);
      this.#leftovers.shift();
      first.close();
    }
    return this.#log.next(limits);
  }
}

function isDiskFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && DISK_FULL_CODES.includes(String(error.code));
}

/** A name of its own for this process and start, sorted by time, and the lock that says it lives. */
function register(dir: string): { owner: string; lock: FileLock } {
  for (let attempt = 0; attempt < 10; attempt += 1) {
    // Microseconds: what is left of two processes is written in the order in which they started.
    const startedUs = Math.floor((performance.timeOrigin + performance.now()) * 1000);
    const started = startedUs.toString(36).padStart(11, '0');
    const owner = `${started}-${process.pid}-${randomBytes(6).toString('hex')}`;
    const lock = FileLock.create(lockPath(dir, owner));
    if (lock !== undefined) return { owner, lock };
  }
  throw new Error(`the audit spool cannot lock a file in ${dir}`);
}

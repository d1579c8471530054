import { readdirSync, rmSync, statSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { FileLock, makeFolder } from '../lib/files.ts';
import { Semaphore } from '../lib/semaphore.ts';
import { uuidV7 } from '../lib/uuid-v7.ts';
import { type BatchLimits, SegmentChain, type SpoolBatch, SpoolLog } from './spool-log.ts';

const SEGMENT_NAME = /^([0-9a-z-]+)\.\d{8}\.seg$/;
const LOCK_NAME = /^([0-9a-z-]+)\.lock$/;

/** The segments that a dead process left, under the lock of that process. Empty or deleted segments are left out. */
class Leftover extends SegmentChain {
  /** The name of the process. */
  readonly owner: string;
  /** To be removed if nothing is left to do for the process, neither lines nor `onDrained`. */
  readonly lock: FileLock;

  constructor(owner: string, lock: FileLock, paths: string[]) {
    super();
    this.owner = owner;
    this.lock = lock;
    for (const path of paths) {
      const bytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
      if (bytes > 0) this.add({ path, bytes });
      else rmSync(path, { force: true });
    }
  }
}

function lockPath(dir: string, owner: string): string {
  return join(dir, `${owner}.lock`);
}

export function segmentPath(dir: string, owner: string, sequence: number): string {
  return join(dir, `${owner}.${String(sequence).padStart(8, '0')}.seg`);
}

/** Locks and returns the segments that dead processes left in `dir`, oldest process first. */
function adoptLeftovers(dir: string): Leftover[] {
  const names = readdirSync(dir);
  const owners = new Set(names.map((name) => (SEGMENT_NAME.exec(name) ?? LOCK_NAME.exec(name))?.[1] ?? ''));
  owners.delete('');
  return [...owners].sort().flatMap((owner) => adopt(dir, owner, names) ?? []);
}

function adopt(dir: string, owner: string, names: string[]): Leftover | undefined {
  const path = lockPath(dir, owner);
  // If the lock's file was deleted, the segments are adopted under a new one.
  const lock = names.includes(`${owner}.lock`) ? FileLock.tryAcquire(path) : FileLock.create(path);
  if (lock === undefined) return undefined;
  // Listed again under the lock, because another process may have consumed them meanwhile.
  const segments = readdirSync(dir).filter((name) => SEGMENT_NAME.exec(name)?.[1] === owner);
  return new Leftover(
    owner,
    lock,
    segments.sort().map((name) => join(dir, name)),
  );
}

export type AuditSpoolOptions = {
  /** The spool's folder, created when it does not exist. Several processes may share it. */
  dir: string;
  /** The most bytes that this process has on disk, including adopted segments; by default 1 GiB. */
  maxBytes?: number;
  segmentBytes?: number;
  /** Whether lines must survive a crash of the machine: `sync` is called after each append. */
  isSynced?: boolean;
  /**
   * Called with the name of a dead process when all lines that it left have been written to the database, before its
   * lock is removed. When it rejects, it is called again by the next drain.
   */
  onDrained?: (owner: string) => Promise<void>;
};

type DrainOptions = { batchSize: number; batchBytes?: number; signal?: AbortSignal };

const MIB = 1024 * 1024;
/** The share at which the spool is full. Requests accepted before may still append lines, into the rest. */
const FULL_SHARE = 15 / 16;
/** The share below which a full spool is ready again, so that it does not turn with each batch. */
const READY_SHARE = 0.8;
const DISK_FULL_CODES = ['ENOSPC', 'EDQUOT'];

/** Thrown when the spool, or the disk that it is on, has no free space for a line. */
export class SpoolFullError extends Error {
  override readonly name = 'SpoolFullError';
  readonly code = 'spool_full';

  constructor(options?: ErrorOptions) {
    super('the audit spool is full', options);
  }
}

/**
 * A store for lines on their way to the database, in files that outlive the process. A line is in the page cache when
 * `append` returns, and is written to the database at least once, by this process or, after its end, by another one
 * that uses the same folder.
 */
export class AuditSpool {
  /** The name of this process in the folder, a UUID that sorts by time. */
  readonly owner: string;
  readonly #options;
  readonly #lock: FileLock;
  readonly #log: SpoolLog;
  #leftovers: Leftover[] = [];
  /** Whether the disk refused the last lines. */
  #isDiskFull = false;
  #isOverLimit = false;
  #isClosed = false;
  /** The number of lines that were skipped because a crash or damage made them unreadable. */
  damagedLines = 0;
  #waitingSinceTick = 0;
  readonly #draining = new Semaphore({ permits: 1 });
  #listener: () => void = () => {};

  private constructor(options: AuditSpoolOptions) {
    const { dir, segmentBytes = 8 * MIB, isSynced = false } = options;
    this.#options = { maxBytes: 1024 * MIB, onDrained: () => Promise.resolve(), ...options };
    const { owner, lock } = register(dir);
    this.owner = owner;
    this.#lock = lock;
    this.#log = new SpoolLog({
      segmentPath: (sequence) => segmentPath(dir, owner, sequence),
      segmentBytes,
      isSynced,
    });
  }

  /**
   * Opens the spool and adopts the segments that dead processes left in the folder.
   * @throws the system's errors.
   */
  static open(options: AuditSpoolOptions): AuditSpool {
    makeFolder(options.dir, 0o700);
    const spool = new AuditSpool(options);
    spool.adopt();
    return spool;
  }

  /**
   * Whether new requests must be refused. A disk counts as full from the first append or sync that fails until a drain
   * finds that it takes lines; requests accepted before still get their responses, though their lines are lost.
   */
  get isFull(): boolean {
    this.#isOverLimit = this.bytesOnDisk >= this.#options.maxBytes * (this.#isOverLimit ? READY_SHARE : FULL_SHARE);
    return this.#isDiskFull || this.#isOverLimit;
  }

  /** Resolves to the bytes until the spool is full: by its limit or, if that is less, by the free space of its disk. */
  async bytesUntilFull(): Promise<number> {
    const { bavail, bsize } = await statfs(this.#options.dir);
    return Math.min(Math.max(this.#options.maxBytes * FULL_SHARE - this.bytesOnDisk, 0), bavail * bsize);
  }

  get bytesOnDisk(): number {
    return this.#leftovers.reduce((sum, leftover) => sum + leftover.bytesOnDisk, this.#log.bytesOnDisk);
  }

  /** The bytes of lines that have not been written to the database yet. */
  get pendingBytes(): number {
    return this.#leftovers.reduce((sum, leftover) => sum + leftover.bytesLeft, this.#log.bytesLeft);
  }

  /** The number of this process's lines that have not been written to the database yet. */
  get pendingLines(): number {
    return this.#log.pendingLines;
  }

  /**
   * How long lines have been pending, in ms, counted from the last batch written or, if later, from the first pending
   * line; 0 when none are pending.
   */
  get waitedMs(): number {
    return this.pendingBytes > 0 ? performance.now() - this.#waitingSinceTick : 0;
  }

  /** Sets the one listener, called after each append, even one that finds the disk full. Replaces the previous one. */
  onAppend(listener: () => void): void {
    this.#listener = listener;
  }

  /**
   * Stores lines (without a line feed) by one write before it returns.
   * @throws SpoolFullError when they would exceed `maxBytes` or the disk is full; then none of them is stored.
   */
  append(...lines: string[]): void {
    if (this.#isClosed) throw new Error('the audit spool is closed');
    if (this.pendingBytes === 0) this.#waitingSinceTick = performance.now();
    const leftoverBytes = this.bytesOnDisk - this.#log.bytesOnDisk;
    try {
      if (!this.#log.append(lines, this.#options.maxBytes - leftoverBytes)) throw new SpoolFullError();
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && DISK_FULL_CODES.includes(String(error.code)))) throw error;
      this.#isDiskFull = true;
      this.#listener();
      throw new SpoolFullError({ cause: error });
    }
    this.#listener();
  }

  /**
   * Resolves when all lines appended so far are on the disk, past its cache. Calls made meanwhile share one sync.
   * @throws the system's error; a crash of the machine may then lose lines that are not in the database.
   */
  async sync(): Promise<void> {
    try {
      await this.#log.sync();
    } catch (error) {
      this.#isDiskFull = true;
      this.#listener();
      throw error;
    }
  }

  /** Adopts the segments of processes that have died meanwhile, and returns the number of those processes. */
  adopt(): number {
    if (this.pendingBytes === 0) this.#waitingSinceTick = performance.now();
    const adopted = adoptLeftovers(this.#options.dir);
    this.#leftovers.push(...adopted);
    return adopted.length;
  }

  /**
   * Passes all lines to `write` in order (lines of dead processes first), one batch at a time, and resolves to their
   * number. Concurrent drains run one after another. Each also checks whether a full disk has free space again.
   * @throws the error of `write`; the next drain passes that batch again.
   */
  drain(write: (lines: Buffer[]) => Promise<void>, options: DrainOptions): Promise<number> {
    return this.#draining.run(undefined, () => this.#drain(write, options));
  }

  /**
   * Closes the files and releases the locks. Lines not written to the database are left for the next process, which
   * calls its `onDrained` for this one, too, if there are none but `isSettled` is false.
   */
  close(isSettled = true): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#log.close();
    for (const { lock } of this.#leftovers) lock.release();
    if (isSettled && this.#log.bytesLeft === 0) this.#lock.remove();
    else this.#lock.release();
  }

  async #drain(write: (lines: Buffer[]) => Promise<void>, options: DrainOptions): Promise<number> {
    const { batchSize, batchBytes = 4 * MIB } = options;
    // With an empty batch the loop would never end.
    const limits = { maxLines: Math.max(batchSize, 1), maxBytes: Math.max(batchBytes, 1) };
    let count = 0;
    // Lines appended in the same tick of the event loop go into the first batch.
    await undefined;
    while (!this.#isClosed && options.signal?.aborted !== true) {
      if (this.#isDiskFull) this.#isDiskFull = !this.#log.hasRoom();
      const batch = await this.#next(limits);
      if (batch === undefined) break;
      if (batch.lines.length > 0) await write(batch.lines);
      if (this.#isClosed) break;
      batch.done();
      this.#waitingSinceTick = performance.now();
      this.damagedLines += batch.damaged;
      count += batch.lines.length;
    }
    return count;
  }

  async #next(limits: BatchLimits): Promise<SpoolBatch | undefined> {
    for (let first = this.#leftovers[0]; first !== undefined; first = this.#leftovers[0]) {
      if (first.bytesLeft > 0) return first.next(limits);
      await this.#options.onDrained(first.owner);
      if (this.#isClosed) return undefined;
      this.#leftovers.shift();
      first.lock.remove();
    }
    return this.#log.next(limits);
  }
}

/**
 * Creates a unique name for this start of the process, which sorts by time, and the lock that shows that it is alive.
 */
function register(dir: string): { owner: string; lock: FileLock } {
  for (let attempt = 0; attempt < 10; attempt += 1) {
    const startedMs = performance.timeOrigin + performance.now();
    const uuid = uuidV7(Math.floor(startedMs));
    // With the fraction of the millisecond (RFC 9562, section 6.2, method 3), so that leftovers of two processes are
    // written in the order in which the processes started.
    const fraction = Math.floor((startedMs % 1) * 4096);
    const owner = `${uuid.slice(0, 15)}${fraction.toString(16).padStart(3, '0')}${uuid.slice(18)}`;
    const lock = FileLock.create(lockPath(dir, owner));
    if (lock !== undefined) return { owner, lock };
  }
  throw new Error(`the audit spool cannot lock a file in ${dir}`);
}

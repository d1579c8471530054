import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, ftruncateSync, openSync, rmSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { makeFolder } from '../lib/make-folder.ts';
import { encodeLines } from './spool-line.ts';
import { type BatchLimits, SegmentChain } from './spool-segments.ts';

/** Lines to hand on; `done` moves on behind them. */
export type Batch = { lines: string[]; damaged: number; done: () => void };

export type SpoolLogOptions = {
  /** The path of the segment with this number. */
  segmentPath: (sequence: number) => string;
  segmentBytes: number;
  /** How many bytes of lines are kept in memory too, so that they need not be read back. */
  memoryBytes: number;
};

/** A disk that takes this much has room again, for more than a line. */
const PROBE_BYTES = 64 * 1024;

/** The file that lines are appended to; `bytes` of it hold whole lines. */
type ActiveSegment = { path: string; fd: number; bytes: number };

/** The lines of this process: appended to segments, and read from memory as long as they fit there. */
export class SpoolLog {
  readonly #options: SpoolLogOptions;
  readonly #chain = new SegmentChain();
  // In the chain as well, from its first line on.
  #active: ActiveSegment | undefined;
  #sequence = 0;
  #pendingLines = 0;
  // Memory holds the oldest lines; it takes new ones only while no line is in the file alone.
  #memory: { line: string; bytes: number }[] = [];
  #memoryBytes = 0;

  constructor(options: SpoolLogOptions) {
    this.#options = options;
  }

  get bytesOnDisk(): number {
    return this.#chain.bytesOnDisk;
  }

  get bytesLeft(): number {
    return this.#chain.bytesLeft;
  }

  get pendingLines(): number {
    return this.#pendingLines;
  }

  /** Appends lines to the file in the page cache. Throws the system's error, and then none of them is in the file. */
  append(lines: readonly string[], maxBytesOnDisk: number): boolean {
    if (lines.length === 0) return true;
    const { bytes: encoded, sizes } = encodeLines(lines);
    if (this.bytesOnDisk + encoded.length > maxBytesOnDisk) return false;
    const isAllInMemory = this.#memoryBytes === this.bytesLeft;
    this.#write(encoded);
    this.#pendingLines += lines.length;
    if (isAllInMemory) this.#remember(lines, sizes);
    return true;
  }

  /** Whether the disk takes a new segment now, by trying: free space says nothing of quotas. Never throws. */
  hasRoom(): boolean {
    try {
      const { path, fd } = this.#open();
      try {
        // A kill after this leaves nothing behind.
        rmSync(path);
        // Random, since a file system that compresses would take zeros for nothing.
        writeWhole(fd, randomBytes(PROBE_BYTES));
      } finally {
        closeSync(fd);
      }
      return true;
    } catch {
      return false;
    }
  }

  /** The oldest lines, or undefined when there are none. */
  next(limits: BatchLimits): Batch | undefined {
    if (this.bytesLeft === 0) return undefined;
    return this.#memory.length > 0 ? this.#nextOfMemory(limits) : this.#nextOfFile(limits);
  }

  /** Brings what was appended to the disk. */
  flush(): void {
    if (this.#active !== undefined) fsyncSync(this.#active.fd);
  }

  close(): void {
    this.#chain.closeReader();
    this.#closeActive();
  }

  #remember(lines: readonly string[], sizes: readonly number[]): void {
    for (const [index, line] of lines.entries()) {
      const bytes = sizes[index] ?? 0;
      if (this.#memoryBytes + bytes > this.#options.memoryBytes) return;
      this.#memory.push({ line, bytes });
      this.#memoryBytes += bytes;
    }
  }

  #nextOfMemory({ maxLines, maxBytes }: BatchLimits): Batch {
    let count = 0;
    let bytes = 0;
    for (const entry of this.#memory) {
      if (count === maxLines || (count > 0 && bytes + entry.bytes > maxBytes)) break;
      count += 1;
      bytes += entry.bytes;
    }
    const lines = this.#memory.slice(0, count).map((entry) => entry.line);
    const done = () => {
      this.#memory = this.#memory.slice(count);
      this.#memoryBytes -= bytes;
      this.#advance(bytes, count);
    };
    return { lines, damaged: 0, done };
  }

  #nextOfFile(limits: BatchLimits): Batch {
    const { lines, damaged, bytes } = this.#chain.read(limits);
    return { lines, damaged, done: () => this.#advance(bytes, lines.length + damaged) };
  }

  #advance(bytes: number, lines: number): void {
    try {
      this.#chain.advance(bytes);
    } finally {
      this.#pendingLines = this.bytesLeft > 0 ? this.#pendingLines - lines : 0;
      // The chain is done with the file of its last line.
      if (this.bytesLeft === 0) this.#closeActive();
    }
  }

  #write(encoded: Buffer): void {
    const { segmentBytes } = this.#options;
    if (this.#active !== undefined && this.#active.bytes + encoded.length > segmentBytes) this.#closeActive();
    this.#active ??= this.#open();
    try {
      writeWhole(this.#active.fd, encoded);
    } catch (error) {
      this.#undo(this.#active);
      throw error;
    }
    if (this.#active.bytes === 0) this.#chain.add({ path: this.#active.path, bytes: encoded.length });
    else this.#chain.grow(encoded.length);
    this.#active.bytes += encoded.length;
  }

  /** Takes back what a failed write left. A segment that has no line yet is given up; so is one that cannot be cut. */
  #undo({ path, fd, bytes }: ActiveSegment): void {
    try {
      if (bytes > 0) {
        ftruncateSync(fd, bytes);
        return;
      }
      rmSync(path, { force: true });
    } catch {
      // The write's own error is what is told; nothing reads behind the lines that count.
    }
    this.#closeActive();
  }

  #open(): ActiveSegment {
    this.#sequence += 1;
    const path = this.#options.segmentPath(this.#sequence);
    makeFolder(dirname(path), 0o700);
    return { path, fd: openSync(path, 'ax', 0o600), bytes: 0 };
  }

  #closeActive(): void {
    const active = this.#active;
    this.#active = undefined;
    if (active !== undefined) closeSync(active.fd);
  }
}

function writeWhole(fd: number, bytes: Buffer): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
}

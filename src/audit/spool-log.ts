import { closeSync, fsyncSync, ftruncateSync, openSync, writeSync } from 'node:fs';
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

/** The lines of this process: appended to segments, and read from memory as long as they fit there. */
export class SpoolLog {
  readonly #options: SpoolLogOptions;
  readonly #chain = new SegmentChain();
  #active: { fd: number; bytes: number } | undefined;
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
    const { bytes: encoded, sizes } = encodeLines(lines);
    if (this.bytesOnDisk + encoded.length > maxBytesOnDisk) return false;
    this.#write(encoded);
    for (const [index, line] of lines.entries()) this.#count(line, sizes[index] ?? 0);
    return true;
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

  #count(line: string, bytes: number): void {
    const isContiguous = this.#memoryBytes === this.bytesLeft;
    this.#chain.grow(bytes);
    this.#pendingLines += 1;
    if (!isContiguous || this.#memoryBytes + bytes > this.#options.memoryBytes) return;
    this.#memory.push({ line, bytes });
    this.#memoryBytes += bytes;
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
    this.#chain.advance(bytes);
    this.#pendingLines -= lines;
    if (this.bytesLeft > 0) return;
    // The chain has removed the file with its last line.
    this.#pendingLines = 0;
    this.#closeActive();
  }

  #write(encoded: Buffer): void {
    if (this.#active !== undefined && this.#active.bytes + encoded.length > this.#options.segmentBytes) {
      if (this.#active.bytes > 0) this.#closeActive();
    }
    this.#active ??= this.#open();
    const { fd, bytes } = this.#active;
    try {
      for (let at = 0; at < encoded.length; ) at += writeSync(fd, encoded, at);
    } catch (error) {
      ftruncateSync(fd, bytes);
      throw error;
    }
    this.#active.bytes += encoded.length;
  }

  #open(): { fd: number; bytes: number } {
    this.#sequence += 1;
    const path = this.#options.segmentPath(this.#sequence);
    makeFolder(dirname(path), 0o700);
    const fd = openSync(path, 'ax', 0o600);
    this.#chain.add({ path, bytes: 0 });
    return { fd, bytes: 0 };
  }

  #closeActive(): void {
    if (this.#active !== undefined) closeSync(this.#active.fd);
    this.#active = undefined;
  }
}

import { randomBytes } from 'node:crypto';
import { closeSync, ftruncateSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { crc32 } from 'node:zlib';
import { makeFolder } from '../lib/files.ts';

// `crc32 line\n`: the sum tells a torn or damaged line from a whole one, whatever the line holds.
const SUM_LENGTH = 8;
const NEWLINE = 0x0a;
/** Of a UTF-16 code unit in UTF-8. */
const MAX_BYTES_PER_UNIT = 3;

/** Lines of a buffer: whole ones, how many were damaged, and the bytes both took. */
type DecodedLines = { lines: string[]; damaged: number; bytes: number };

/** As large as the lines of most ticks: memory that every encoding uses again. */
const scratch = Buffer.allocUnsafeSlow(256 * 1024);

/**
 * The bytes of lines in a segment, valid until the next call, and how many each takes. Throws a TypeError when one holds
 * a line feed.
 */
function encodeLines(lines: readonly string[]): { bytes: Buffer; sizes: number[] } {
  const most = lines.reduce((sum, line) => sum + SUM_LENGTH + 2 + line.length * MAX_BYTES_PER_UNIT, 0);
  const buffer = most <= scratch.length ? scratch : Buffer.allocUnsafe(most);
  const sizes: number[] = [];
  let at = 0;
  for (const line of lines) {
    if (line.includes('\n')) throw new TypeError('a line of the audit spool must not hold a line feed');
    const start = at + SUM_LENGTH + 1;
    const end = start + buffer.write(line, start);
    buffer.write(`${sumOf(crc32(buffer.subarray(start, end)))} `, at, 'latin1');
    buffer[end] = NEWLINE;
    sizes.push(end + 1 - at);
    at = end + 1;
  }
  return { bytes: buffer.subarray(0, at), sizes };
}

/** Decodes at most `maxLines` lines from the start of `buffer`; a line without its end is left. */
export function decodeLines(buffer: Buffer, maxLines: number): DecodedLines {
  const decoded: DecodedLines = { lines: [], damaged: 0, bytes: 0 };
  while (decoded.lines.length < maxLines) {
    const end = buffer.indexOf(NEWLINE, decoded.bytes);
    if (end === -1) break;
    const content = buffer.subarray(Math.min(decoded.bytes + SUM_LENGTH + 1, end), end);
    const sum = buffer.toString('latin1', decoded.bytes, decoded.bytes + SUM_LENGTH);
    if (sum === sumOf(crc32(content))) decoded.lines.push(content.toString('utf8'));
    else decoded.damaged += 1;
    decoded.bytes = end + 1;
  }
  return decoded;
}

function sumOf(value: number): string {
  return value.toString(16).padStart(SUM_LENGTH, '0');
}

/** A file of lines; `bytes` counts what was written whole, or the file's size when a dead process left it. */
type Segment = { path: string; bytes: number };

export type BatchLimits = { maxLines: number; maxBytes: number };

/**
 * Segments in their order and the place up to which their lines were handed on. Finished segments are removed. Each
 * segment holds something, and the place is before the end of the first: so there is always something to read or to skip.
 */
export class SegmentChain {
  readonly #segments: Segment[] = [];
  #offset = 0;
  #bytesOnDisk = 0;
  #reader: { path: string; fd: number } | undefined;

  get bytesOnDisk(): number {
    return this.#bytesOnDisk;
  }

  /** Bytes of lines that were not handed on yet. */
  get bytesLeft(): number {
    return this.#bytesOnDisk - this.#offset;
  }

  /** Throws a RangeError for a segment without a byte: nothing would ever move on behind it. */
  add(segment: Segment): void {
    if (segment.bytes <= 0) throw new RangeError('an empty segment has no place in the chain');
    this.#segments.push(segment);
    this.#bytesOnDisk += segment.bytes;
  }

  /** Counts bytes that were written to the last segment. */
  grow(bytes: number): void {
    const last = this.#segments.at(-1);
    if (last === undefined) throw new RangeError('no segment to grow');
    last.bytes += bytes;
    this.#bytesOnDisk += bytes;
  }

  /**
   * The next lines; `bytes` is what to advance by afterwards, more than none also when every line was damaged, or the
   * file has been cut or is gone.
   */
  read(limits: BatchLimits): DecodedLines {
    const segment = this.#segments[0];
    if (segment === undefined) return { lines: [], damaged: 0, bytes: 0 };
    const left = segment.bytes - this.#offset;
    for (let size = Math.min(limits.maxBytes, left); ; size = Math.min(size * 2, left)) {
      const buffer = this.#readBytes(segment.path, size);
      const decoded = decodeLines(buffer, limits.maxLines);
      if (decoded.bytes > 0) return decoded;
      // The segment ends in a torn line, or ends early.
      if (size === left || buffer.length < size) return { lines: [], damaged: 1, bytes: left };
    }
  }

  /** Moves on by `bytes` of lines, across segments. Throws the system's error for a file that stays, and has moved on. */
  advance(bytes: number): void {
    this.#offset = Math.min(this.#offset + bytes, this.#bytesOnDisk);
    const finished: Segment[] = [];
    for (let first = this.#segments[0]; first !== undefined && this.#offset >= first.bytes; first = this.#segments[0]) {
      this.#segments.shift();
      this.#offset -= first.bytes;
      this.#bytesOnDisk -= first.bytes;
      finished.push(first);
    }
    if (finished.length > 0) this.closeReader();
    for (const { path } of finished) rmSync(path, { force: true });
  }

  closeReader(): void {
    if (this.#reader !== undefined) closeSync(this.#reader.fd);
    this.#reader = undefined;
  }

  /** Fewer bytes than asked for when the file has no more, none when it is gone. */
  #readBytes(path: string, size: number): Buffer {
    try {
      if (this.#reader?.path !== path) {
        this.closeReader();
        this.#reader = { path, fd: openSync(path, 'r') };
      }
      const buffer = Buffer.allocUnsafe(size);
      let length = 0;
      for (let read = -1; read !== 0 && length < size; length += read) {
        read = readSync(this.#reader.fd, buffer, length, size - length, this.#offset + length);
      }
      return buffer.subarray(0, length);
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return Buffer.alloc(0);
      throw error;
    }
  }
}

/** Lines to hand on; `done` moves on behind them. */
export type SpoolBatch = { lines: string[]; damaged: number; done: () => void };

type SpoolLogOptions = {
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
export class SpoolLog extends SegmentChain {
  readonly #options: SpoolLogOptions;
  // In the chain as well, from its first line on.
  #active: ActiveSegment | undefined;
  #sequence = 0;
  #pendingLines = 0;
  // Memory holds the oldest lines; it takes new ones only while no line is in the file alone.
  #memory: { line: string; bytes: number }[] = [];
  #memoryBytes = 0;

  constructor(options: SpoolLogOptions) {
    super();
    this.#options = options;
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
  next(limits: BatchLimits): SpoolBatch | undefined {
    if (this.bytesLeft === 0) return undefined;
    if (this.#memory.length > 0) return this.#nextOfMemory(limits);
    const { lines, damaged, bytes } = this.read(limits);
    return { lines, damaged, done: () => this.#handedOn(bytes, lines.length + damaged) };
  }

  close(): void {
    this.closeReader();
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

  #nextOfMemory({ maxLines, maxBytes }: BatchLimits): SpoolBatch {
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
      this.#handedOn(bytes, count);
    };
    return { lines, damaged: 0, done };
  }

  #handedOn(bytes: number, lines: number): void {
    try {
      this.advance(bytes);
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
    if (this.#active.bytes === 0) this.add({ path: this.#active.path, bytes: encoded.length });
    else this.grow(encoded.length);
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
      // The error of the write is thrown; nothing reads behind the lines that count.
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

import { randomBytes } from 'node:crypto';
import {
  closeSync,
  fdatasync,
  fdatasyncSync,
  fsync,
  ftruncateSync,
  openSync,
  readSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { crc32 } from 'node:zlib';
import { makeFolder } from '../lib/files.ts';

// The format of a line is `crc32 line\n`; the checksum detects torn and damaged lines of any content.
const SUM_LENGTH = 8;
const NEWLINE = 0x0a;
/** The most bytes that one UTF-16 code unit takes in UTF-8. */
const MAX_BYTES_PER_UNIT = 3;

/** Lines decoded from a buffer, the number of damaged lines, and the bytes that all of them took. */
type DecodedLines = { lines: Buffer[]; damaged: number; bytes: number };

const SLAB_BYTES = 256 * 1024;

/** The memory that lines are encoded into; what of it is kept stays until the last of its lines is handed on. */
let slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
let slabUsed = 0;

/** Returns `bytes` bytes or more to encode into. Those used by `encodeLines` are not returned again. */
function room(bytes: number): Buffer {
  if (bytes > SLAB_BYTES) return Buffer.allocUnsafeSlow(bytes);
  if (slabUsed + bytes > SLAB_BYTES) {
    slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
    slabUsed = 0;
  }
  return slab.subarray(slabUsed);
}

/**
 * Encodes lines for a segment. Returns the bytes of all, and of each line without its checksum and line feed.
 * @throws TypeError when a line contains a line feed.
 */
function encodeLines(texts: readonly string[]): { bytes: Buffer; lines: Buffer[] } {
  const buffer = room(texts.reduce((sum, text) => sum + SUM_LENGTH + 2 + text.length * MAX_BYTES_PER_UNIT, 0));
  const lines: Buffer[] = [];
  let at = 0;
  for (const text of texts) {
    if (text.includes('\n')) throw new TypeError('a line of the audit spool must not contain a line feed');
    const start = at + SUM_LENGTH + 1;
    const end = start + buffer.write(text, start);
    const line = buffer.subarray(start, end);
    buffer.write(`${sumOf(crc32(line))} `, at, 'latin1');
    buffer[end] = NEWLINE;
    lines.push(line);
    at = end + 1;
  }
  if (buffer.buffer === slab.buffer) slabUsed += at;
  return { bytes: buffer.subarray(0, at), lines };
}

/** Decodes at most `maxLines` lines from the start of `buffer`; ignores an incomplete line at its end. */
export function decodeLines(buffer: Buffer, maxLines: number): DecodedLines {
  const decoded: DecodedLines = { lines: [], damaged: 0, bytes: 0 };
  while (decoded.lines.length < maxLines) {
    const end = buffer.indexOf(NEWLINE, decoded.bytes);
    if (end === -1) break;
    const line = buffer.subarray(Math.min(decoded.bytes + SUM_LENGTH + 1, end), end);
    const sum = buffer.toString('latin1', decoded.bytes, decoded.bytes + SUM_LENGTH);
    if (sum === sumOf(crc32(line))) decoded.lines.push(line);
    else decoded.damaged += 1;
    decoded.bytes = end + 1;
  }
  return decoded;
}

/** Returns the bytes that a line takes in a segment. */
function storedBytes(line: Buffer): number {
  return SUM_LENGTH + 1 + line.length + 1;
}

function sumOf(value: number): string {
  return value.toString(16).padStart(SUM_LENGTH, '0');
}

/** A file of lines. `bytes` counts its completely written lines, or is the file's size when a dead process left it. */
type Segment = { path: string; bytes: number };

export type BatchLimits = { maxLines: number; maxBytes: number };

/**
 * The segments of one process, in order, and the offset up to which their lines have been consumed. Removes consumed
 * segments. The offset is always before the end of the first segment, so that `read` always makes progress.
 */
export class SegmentChain {
  readonly #segments: Segment[] = [];
  #offset = 0;
  bytesOnDisk = 0;
  #reader: { path: string; fd: number } | undefined;

  /** The bytes of lines that have not been consumed yet. */
  get bytesLeft(): number {
    return this.bytesOnDisk - this.#offset;
  }

  /**
   * Appends a segment to the chain.
   * @throws RangeError when the segment is empty, because `advance` would never get past it.
   */
  add(segment: Segment): void {
    if (segment.bytes <= 0) throw new RangeError('an empty segment cannot be part of the chain');
    this.#segments.push(segment);
    this.bytesOnDisk += segment.bytes;
  }

  /**
   * Adds bytes that were written to the last segment to its size.
   * @throws RangeError when there is no segment.
   */
  grow(bytes: number): void {
    const last = this.#segments.at(-1);
    if (last === undefined) throw new RangeError('no segment to grow');
    last.bytes += bytes;
    this.bytesOnDisk += bytes;
  }

  /**
   * Reads the next lines. Their `bytes` is what to pass to `advance` afterwards; it is more than 0 even when every line
   * was damaged, or the file was truncated or deleted.
   */
  read(limits: BatchLimits): DecodedLines {
    const segment = this.#segments[0];
    if (segment === undefined) return { lines: [], damaged: 0, bytes: 0 };
    const bytesLeft = segment.bytes - this.#offset;
    for (let size = Math.min(limits.maxBytes, bytesLeft); ; size = Math.min(size * 2, bytesLeft)) {
      const buffer = this.#readBytes(segment.path, size);
      const decoded = decodeLines(buffer, limits.maxLines);
      if (decoded.bytes > 0) return decoded;
      // The segment ends in a torn line, or the file is shorter than it should be.
      if (size === bytesLeft || buffer.length < size) return { lines: [], damaged: 1, bytes: bytesLeft };
    }
  }

  /**
   * Marks the next `bytes` as consumed, across segments, and removes consumed segments.
   * @throws the system's error when a file cannot be removed; it still counts as consumed.
   */
  advance(bytes: number): void {
    this.#offset = Math.min(this.#offset + bytes, this.bytesOnDisk);
    const finished: Segment[] = [];
    for (let first = this.#segments[0]; first !== undefined && this.#offset >= first.bytes; first = this.#segments[0]) {
      this.#segments.shift();
      this.#offset -= first.bytes;
      this.bytesOnDisk -= first.bytes;
      finished.push(first);
    }
    if (finished.length > 0) this.closeReader();
    for (const { path } of finished) rmSync(path, { force: true });
  }

  closeReader(): void {
    if (this.#reader !== undefined) closeSync(this.#reader.fd);
    this.#reader = undefined;
  }

  /**
   * Reads up to `size` bytes from the current offset: fewer when the file ends before, none when it has been deleted.
   */
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

/** A batch of spooled lines and the number of damaged ones that were skipped; `done` marks all of them as consumed. */
export type SpoolBatch = { lines: Buffer[]; damaged: number; done: () => void };

/** The bytes written to test whether a full disk has free space again; more than one line needs. */
const PROBE_BYTES = 64 * 1024;

/**
 * The file that lines are appended to. Its first `bytes` bytes are whole lines. `isNamed` says whether the disk has its
 * entry in the folder, and `hasFailed` whether a sync of it has failed.
 */
type ActiveSegment = { path: string; fd: number; bytes: number; isNamed: boolean; hasFailed: boolean };

/** The spool of this process: appends lines to segments, and reads them from memory as long as they fit there. */
export class SpoolLog extends SegmentChain {
  readonly #options;
  // The active segment is in the chain too, once it has a line.
  #active: ActiveSegment | undefined;
  /** The segments with lines that no sync has begun to write, and those of the sync in progress, which closes them. */
  #unsynced = new Set<ActiveSegment>();
  #inSync = new Set<ActiveSegment>();
  /** The last sync that has begun, and the one that begins after it and includes all lines appended until then. */
  #syncing: Promise<unknown> = Promise.resolve();
  #next: Promise<void> | undefined;
  #sequence = 0;
  /** The number of lines that have not been consumed yet. */
  pendingLines = 0;
  // Memory holds the oldest lines. It accepts new ones only while every unconsumed line is in memory.
  #memory: Buffer[] = [];
  #memoryBytes = 0;

  constructor(options: {
    /** Returns the path of the segment with this number. */
    segmentPath: (sequence: number) => string;
    segmentBytes: number;
    /** The most bytes of lines that are also held in memory, so that they need not be read back from the file. */
    memoryBytes: number;
    /** Whether `sync` is called after each append. */
    isSynced: boolean;
  }) {
    super();
    this.#options = options;
  }

  /**
   * Appends lines to the active segment, in the page cache. Returns false, without writing, when the segments would
   * exceed `maxBytesOnDisk` bytes.
   * @throws the system's error; then none of the lines is in the file.
   */
  append(lines: readonly string[], maxBytesOnDisk: number): boolean {
    if (lines.length === 0) return true;
    const { bytes: encoded, lines: encodedLines } = encodeLines(lines);
    if (this.bytesOnDisk + encoded.length > maxBytesOnDisk) return false;
    const isAllInMemory = this.#memoryBytes === this.bytesLeft;
    this.#write(encoded);
    this.pendingLines += lines.length;
    if (isAllInMemory) this.#remember(encodedLines);
    return true;
  }

  /**
   * Resolves when all lines appended so far are on the disk, past its cache. Calls made during a sync share the next one.
   * @throws the system's error. The segments concerned take no further line: after a failed sync the kernel may drop the
   * pages, and another sync of the same file would succeed without them.
   */
  sync(): Promise<void> {
    if (!this.#next) {
      this.#next = this.#syncing.then(() => this.#syncAll());
      this.#syncing = this.#next.catch(() => undefined);
    }
    return this.#next;
  }

  /**
   * Checks whether the disk takes lines by writing a test file, because the free space reported ignores quotas. Never
   * throws.
   */
  hasRoom(): boolean {
    try {
      const { path, fd } = this.#open();
      try {
        // Removed at once, so that nothing is left behind if the process is killed.
        rmSync(path);
        // Random bytes, because a compressing file system would store zeros in almost no space.
        writeWhole(fd, randomBytes(PROBE_BYTES));
        if (this.#options.isSynced) fdatasyncSync(fd);
      } finally {
        closeSync(fd);
      }
      return true;
    } catch {
      return false;
    }
  }

  /** Returns the oldest lines, or undefined when there are none. */
  next(limits: BatchLimits): SpoolBatch | undefined {
    if (this.bytesLeft === 0) return undefined;
    if (this.#memory.length > 0) return this.#nextOfMemory(limits);
    const { lines, damaged, bytes } = this.read(limits);
    return { lines, damaged, done: () => this.#advancePast(bytes, lines.length + damaged) };
  }

  close(): void {
    this.closeReader();
    this.#closeActive();
  }

  #remember(lines: readonly Buffer[]): void {
    for (const line of lines) {
      const bytes = storedBytes(line);
      if (this.#memoryBytes + bytes > this.#options.memoryBytes) return;
      this.#memory.push(line);
      this.#memoryBytes += bytes;
    }
  }

  #nextOfMemory({ maxLines, maxBytes }: BatchLimits): SpoolBatch {
    let count = 0;
    let bytes = 0;
    for (const line of this.#memory) {
      if (count === maxLines || (count > 0 && bytes + storedBytes(line) > maxBytes)) break;
      count += 1;
      bytes += storedBytes(line);
    }
    const lines = this.#memory.slice(0, count);
    const done = () => {
      this.#memory = this.#memory.slice(count);
      this.#memoryBytes -= bytes;
      this.#advancePast(bytes, count);
    };
    return { lines, damaged: 0, done };
  }

  #advancePast(bytes: number, lines: number): void {
    try {
      this.advance(bytes);
    } finally {
      this.pendingLines = this.bytesLeft > 0 ? this.pendingLines - lines : 0;
      // The chain has removed the file of its last line.
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
      this.#undoWrite(this.#active);
      throw error;
    }
    if (this.#active.bytes === 0) this.add({ path: this.#active.path, bytes: encoded.length });
    else this.grow(encoded.length);
    this.#active.bytes += encoded.length;
    if (this.#options.isSynced) this.#unsynced.add(this.#active);
  }

  async #syncAll(): Promise<void> {
    this.#next = undefined;
    const segments = this.#unsynced;
    [this.#inSync, this.#unsynced] = [segments, new Set()];
    try {
      for (const segment of segments) await syncSegment(segment);
    } finally {
      this.#inSync = new Set();
      if (this.#active?.hasFailed) this.#active = undefined;
      for (const segment of segments) {
        if (segment !== this.#active && !this.#unsynced.has(segment)) closeSync(segment.fd);
      }
    }
  }

  /** Removes what a failed write left. Abandons a segment that has no line yet or cannot be truncated. */
  #undoWrite({ path, fd, bytes }: ActiveSegment): void {
    try {
      if (bytes > 0) {
        ftruncateSync(fd, bytes);
        return;
      }
      rmSync(path, { force: true });
    } catch {
      // The caller throws the error of the write; nothing reads past the lines that count.
    }
    this.#closeActive();
  }

  #open(): ActiveSegment {
    this.#sequence += 1;
    const path = this.#options.segmentPath(this.#sequence);
    makeFolder(dirname(path), 0o700);
    return { path, fd: openSync(path, 'ax', 0o600), bytes: 0, isNamed: false, hasFailed: false };
  }

  #closeActive(): void {
    const active = this.#active;
    this.#active = undefined;
    if (active && !this.#unsynced.has(active) && !this.#inSync.has(active)) closeSync(active.fd);
  }
}

const [dataSync, wholeSync] = [promisify(fdatasync), promisify(fsync)];

/**
 * Makes the disk write a segment: its lines, and once also its entry in the folder.
 * @throws the system's error, now and for lines that were appended meanwhile.
 */
async function syncSegment(segment: ActiveSegment): Promise<void> {
  if (segment.hasFailed) throw new Error('an earlier sync of this audit segment has failed');
  segment.hasFailed = true;
  await dataSync(segment.fd);
  if (!segment.isNamed) await syncFolder(dirname(segment.path));
  Object.assign(segment, { isNamed: true, hasFailed: false });
}

/** Makes the disk write the entries of a folder. @throws the system's error. */
async function syncFolder(path: string): Promise<void> {
  const fd = openSync(path, 'r');
  await wholeSync(fd).finally(() => closeSync(fd));
}

function writeWhole(fd: number, bytes: Buffer): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
}

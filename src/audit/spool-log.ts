import { randomBytes } from 'node:crypto';
import {
  closeSync,
  existsSync,
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
import { SharedRuns } from '../lib/shared-runs.ts';

// The format of a line is `crc32 line\n`; the checksum detects torn and damaged lines of any content.
const SUM_LENGTH = 8;
const NEWLINE = 0x0a;
/** Lines decoded from a buffer, the number of damaged lines, and the bytes that all of them took. */
type DecodedLines = { lines: Buffer[]; damaged: number; bytes: number };

/**
 * Encodes lines for a segment.
 * @throws TypeError when a line contains a line feed.
 */
function encodeLines(texts: readonly string[]): Buffer {
  if (texts.some((text) => text.includes('\n'))) {
    throw new TypeError('a line of the audit spool must not contain a line feed');
  }
  return Buffer.from(texts.map((text) => `${sumOf(crc32(text))} ${text}\n`).join(''));
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

  /** Returns the oldest lines, or undefined when there are none. */
  next(limits: BatchLimits): SpoolBatch | undefined {
    if (this.bytesLeft === 0) return undefined;
    const { lines, damaged, bytes } = this.#read(limits);
    return { lines, damaged, done: () => this.advance(bytes, lines.length + damaged) };
  }

  /**
   * Reads the next lines. Their `bytes` is what to pass to `advance` afterwards; it is more than 0 even when every line
   * was damaged, or the file was truncated or deleted.
   */
  #read(limits: BatchLimits): DecodedLines {
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
  advance(bytes: number, _lines: number): void {
    this.#offset = Math.min(this.#offset + bytes, this.bytesOnDisk);
    const finished: Segment[] = [];
    for (let first = this.#segments[0]; first !== undefined && this.#offset >= first.bytes; first = this.#segments[0]) {
      this.#segments.shift();
      this.#offset -= first.bytes;
      this.bytesOnDisk -= first.bytes;
      finished.push(first);
    }
    for (const { path } of finished) rmSync(path, { force: true });
  }

  /**
   * Reads up to `size` bytes from the current offset: fewer when the file ends before, none when it has been deleted.
   */
  #readBytes(path: string, size: number): Buffer {
    if (!existsSync(path)) return Buffer.alloc(0);
    const fd = openSync(path, 'r');
    try {
      const buffer = Buffer.allocUnsafe(size);
      let length = 0;
      for (let read = -1; read !== 0 && length < size; length += read) {
        read = readSync(fd, buffer, length, size - length, this.#offset + length);
      }
      return buffer.subarray(0, length);
    } finally {
      closeSync(fd);
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

/** The spool of this process: appends lines to segments, and reads them back. */
export class SpoolLog extends SegmentChain {
  readonly #options;
  // The active segment is in the chain too, once it has a line.
  #active: ActiveSegment | undefined;
  /** The segments with lines that no sync has begun to write, and those of the sync in progress, which closes them. */
  #unsynced = new Set<ActiveSegment>();
  #inSync = new Set<ActiveSegment>();
  readonly #syncs = new SharedRuns(() => this.#syncAll());
  #sequence = 0;
  /** The number of lines that have not been consumed yet. */
  pendingLines = 0;

  constructor(options: {
    /** Returns the path of the segment with this number. */
    segmentPath: (sequence: number) => string;
    segmentBytes: number;
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
    const encoded = encodeLines(lines);
    if (this.bytesOnDisk + encoded.length > maxBytesOnDisk) return false;
    this.#write(encoded);
    this.pendingLines += lines.length;
    return true;
  }

  /**
   * Resolves when all lines appended so far are on the disk, past its cache. Calls made during a sync share the next one.
   * @throws the system's error. The segments concerned take no further line: after a failed sync the kernel may drop the
   * pages, and another sync of the same file would succeed without them.
   */
  sync(): Promise<void> {
    return this.#syncs.run();
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

  close(): void {
    this.#closeActive();
  }

  override advance(bytes: number, lines: number): void {
    try {
      super.advance(bytes, lines);
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

import { closeSync, openSync, readSync, rmSync } from 'node:fs';
import { type DecodedLines, decodeLines } from './spool-line.ts';

/** A file of lines; `bytes` counts what was written whole, or the file's size when a dead process left it. */
export type Segment = { path: string; bytes: number };

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

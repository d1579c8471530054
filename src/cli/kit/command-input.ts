import { createReadStream, fstatSync, openSync } from 'node:fs';
import { addAbortSignal, type Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { CommandError, UsageError } from './command.ts';

const CHUNK_BYTES = 256 * 1024;
/**
 * How long to wait for a signal after the standard input has ended, in ms. Ctrl+C also ends the program that writes
 * into the pipe, so the end may arrive before the signal.
 */
const SIGNAL_MS = 200;

/** A file that a command reads, with its size in bytes; undefined if that is unknown. */
export interface InputFile {
  /**
   * Returns the bytes; may be called once.
   * @throws AbortError when `signal` aborts, even after the last byte.
   */
  parts(signal?: AbortSignal): AsyncIterable<Buffer>;
  size: number | undefined;
  /** The size and the time of the last change, by which a change is noticed; undefined if they are unknown. */
  stamp: string | undefined;
}

/**
 * Opens a file, or the standard input for `-`.
 * @throws CommandError when it cannot be read.
 */
export function openInput(file: string): InputFile {
  if (file === '-') return { parts: pipedParts, size: undefined, stamp: undefined };
  try {
    const fd = openSync(file, 'r');
    const stats = fstatSync(fd);
    if (stats.isDirectory()) throw new CommandError(`${file} is a folder: give a file`);
    const stream = createReadStream(file, { fd, highWaterMark: CHUNK_BYTES });
    return {
      parts: (signal) => withFileInErrors(file, partsOf(stream, signal)),
      size: stats.isFile() ? stats.size : undefined,
      stamp: `${stats.size} ${stats.mtimeMs}`,
    };
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw unreadable(file, error);
  }
}

async function* withFileInErrors(file: string, parts: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield* parts;
  } catch (error) {
    throw error instanceof Error && 'syscall' in error ? unreadable(file, error) : error;
  }
}

function unreadable(file: string, error: unknown): CommandError {
  const reason = error instanceof Error && 'code' in error ? error.code : error;
  return new CommandError(`${file} cannot be read (${reason}): give a readable file`);
}

async function* pipedParts(signal?: AbortSignal): AsyncGenerator<Buffer> {
  yield* partsOf(process.stdin, signal);
  if (signal) await delay(SIGNAL_MS, undefined, { signal });
}

function partsOf(stream: Readable, signal?: AbortSignal): AsyncIterable<Buffer> {
  return signal ? addAbortSignal(signal, stream) : stream;
}

const MAX_BYTES = 64 * 1024;
const NEWLINE = 0x0a;

/**
 * Returns the first line of the standard input without its line break; undefined at a terminal or if the input is
 * empty. Closes the stream: nothing after the line is read.
 * @throws UsageError for a line of more than 64 KiB, or one that is not UTF-8.
 */
export async function firstLine(stream: Readable & { isTTY?: boolean }): Promise<string | undefined> {
  if (stream.isTTY) return undefined;
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream) {
    const bytes = Buffer.from(chunk);
    const end = bytes.indexOf(NEWLINE);
    const part = end < 0 ? bytes : bytes.subarray(0, end);
    chunks.push(part);
    size += part.length;
    if (size > MAX_BYTES) throw new UsageError('the first line of standard input is longer than 64 KiB');
    if (end >= 0) return decoded(chunks);
  }
  return size === 0 ? undefined : decoded(chunks);
}

function decoded(chunks: readonly Buffer[]): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks)).replace(/\r$/, '');
  } catch {
    throw new UsageError('standard input is not UTF-8');
  }
}

import { createReadStream, fstatSync, openSync } from 'node:fs';
import { addAbortSignal, type Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { CommandError } from './command.ts';

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

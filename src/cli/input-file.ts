import { createReadStream, fstatSync, openSync } from 'node:fs';
import { CommandError } from './command.ts';

const CHUNK_BYTES = 256 * 1024;

/** What a command reads, and how many bytes it is where that is known. */
export interface InputFile {
  stream: AsyncIterable<Buffer>;
  size: number | undefined;
}

/** Opens a file, or the standard input for `-`. @throws CommandError where it cannot be read. */
export function openInput(file: string): InputFile {
  if (file === '-') return { stream: process.stdin, size: undefined };
  try {
    const fd = openSync(file, 'r');
    const stats = fstatSync(fd);
    if (stats.isDirectory()) throw new CommandError(`${file} is a folder: name a file`);
    const stream = createReadStream(file, { fd, highWaterMark: CHUNK_BYTES });
    return { stream, size: stats.isFile() ? stats.size : undefined };
  } catch (error) {
    if (error instanceof CommandError) throw error;
    const reason = error instanceof Error && 'code' in error ? error.code : error;
    throw new CommandError(`${file} cannot be read (${reason}): name a file that can`);
  }
}

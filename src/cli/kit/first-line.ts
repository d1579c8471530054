import type { Readable } from 'node:stream';
import { UsageError } from './command.ts';

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

import { crc32 } from 'node:zlib';

// `crc32 line\n`: the sum tells a torn or damaged line from a whole one, whatever the line holds.
const SUM_LENGTH = 8;
const NEWLINE = 0x0a;

/** Lines of a buffer: whole ones, how many were damaged, and the bytes both took. */
export type DecodedLines = { lines: string[]; damaged: number; bytes: number };

/** The bytes of one line in a segment. Throws a TypeError when the line holds a line feed. */
export function encodeLine(line: string): Buffer {
  if (line.includes('\n')) throw new TypeError('a line of the audit spool must not hold a line feed');
  return Buffer.from(`${sumOf(crc32(line))} ${line}\n`);
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

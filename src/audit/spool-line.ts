import { crc32 } from 'node:zlib';

// `crc32 line\n`: the sum tells a torn or damaged line from a whole one, whatever the line holds.
const SUM_LENGTH = 8;
const NEWLINE = 0x0a;
/** Of a UTF-16 code unit in UTF-8. */
const MAX_BYTES_PER_UNIT = 3;

/** Lines of a buffer: whole ones, how many were damaged, and the bytes both took. */
export type DecodedLines = { lines: string[]; damaged: number; bytes: number };

/** What the lines of most turns come to: memory that every encoding uses again. */
const scratch = Buffer.allocUnsafeSlow(256 * 1024);

/**
 * The bytes of lines in a segment, valid until the next call, and how many each takes. Throws a TypeError when one holds
 * a line feed.
 */
export function encodeLines(lines: readonly string[]): { bytes: Buffer; sizes: number[] } {
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

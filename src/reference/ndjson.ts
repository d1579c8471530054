const NEWLINE = 0x0a;
const RETURN = 0x0d;

/** A line of a file, numbered from 1; `bytes` is undefined for one that is longer than allowed. */
export interface Line {
  number: number;
  bytes: Buffer | undefined;
}

/** The lines of a stream without their ends, empty ones left out. It holds one chunk and one line in memory. */
export async function* linesOf(source: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Line[]> {
  let pending: Buffer[] = [];
  let pendingBytes = 0;
  let number = 0;
  const take = (last: Buffer): Line | undefined => {
    number += 1;
    const isLong = pendingBytes + last.length > maxBytes;
    const bytes = pending.length === 0 ? last : Buffer.concat([...pending, last]);
    pending = [];
    pendingBytes = 0;
    if (isLong) return { number, bytes: undefined };
    const text = bytes.at(-1) === RETURN ? bytes.subarray(0, -1) : bytes;
    return text.length === 0 ? undefined : { number, bytes: text };
  };
  for await (const given of source) {
    const chunk = Buffer.from(given.buffer, given.byteOffset, given.byteLength);
    const lines: Line[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      const line = take(chunk.subarray(start, end));
      if (line) lines.push(line);
      start = end + 1;
    }
    pendingBytes += chunk.length - start;
    // Of a line that is too long only the length is kept.
    if (pendingBytes > maxBytes) pending = [];
    else if (start < chunk.length) pending.push(chunk.subarray(start));
    yield lines;
  }
  const last = pendingBytes > 0 ? take(Buffer.alloc(0)) : undefined;
  if (last) yield [last];
}

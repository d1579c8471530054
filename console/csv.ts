const NEWLINE = 0x0a;
const RETURN = 0x0d;
const QUOTE = 0x22;
const COMMA = 0x2c;
/** The greatest length of a record in bytes, without its line end, as the server has it. */
const MAX_RECORD_BYTES = 16 * 1024;
const LINE_END_BYTES = 2;
const SLICE_BYTES = 1024 ** 2;

type Bytes = Uint8Array<ArrayBuffer>;

/** Where the record at `start` ends, without its line end, and the next one begins; `columns` are its fields. */
interface Extent {
  end: number;
  next: number;
  columns: number;
}

/** Finds the end of a field. Undefined when the bytes end before it, and `stray` for a quote that is out of place. */
function fieldEnd(bytes: Bytes, start: number): number | 'stray' | undefined {
  if (bytes[start] === QUOTE) {
    for (let from = start + 1; ; ) {
      const quote = bytes.indexOf(QUOTE, from);
      if (quote < 0 || quote + 1 >= bytes.length) return undefined;
      if (bytes[quote + 1] !== QUOTE) return quote + 1;
      from = quote + 2;
    }
  }
  for (let at = start; at < bytes.length; at += 1) {
    if (bytes[at] === QUOTE) return 'stray';
    if (bytes[at] === COMMA) return at;
    if (bytes[at] === NEWLINE) return bytes[at - 1] === RETURN && at > start ? at - 1 : at;
  }
  return undefined;
}

/** Finds the end of a record with quotes, which may have line ends inside of them. */
function quotedExtent(bytes: Bytes): Extent | 'stray' | undefined {
  for (let at = 0, columns = 1; ; columns += 1) {
    const end = fieldEnd(bytes, at);
    if (end === undefined || end === 'stray') return end;
    at = end + 1;
    if (bytes[end] === COMMA) continue;
    const newline = bytes[end] === RETURN ? at : end;
    if (newline >= bytes.length) return undefined;
    return bytes[newline] === NEWLINE ? { end, next: newline + 1, columns } : 'stray';
  }
}

/** Finds the end of the record at `start`, whose line ends at `newline`: a malformed record ends with its first line. */
function extentOf(
  bytes: Bytes,
  { start, newline, isLast }: { start: number; newline: number; isLast: boolean },
  columns: number | undefined,
): Extent | undefined {
  const lineBytes = bytes.subarray(start, newline);
  const line = { end: newline, next: newline + 1, columns: lineBytes.filter((byte) => byte === COMMA).length + 1 };
  if (!lineBytes.includes(QUOTE)) return line;
  const window = bytes.subarray(start, start + MAX_RECORD_BYTES + LINE_END_BYTES);
  const found = quotedExtent(window);
  if (!found) return isLast || window.length === MAX_RECORD_BYTES + LINE_END_BYTES ? line : undefined;
  if (found === 'stray' || found.end > MAX_RECORD_BYTES) return line;
  // With a wrong number of fields, a quote was probably left open: the further lines are then records of their own.
  const isLeftOpen = start + found.next > line.next && columns !== undefined && found.columns !== columns;
  return isLeftOpen ? line : { ...found, end: start + found.end, next: start + found.next };
}

/**
 * Cuts the header and the wanted records out of a CSV file, byte for byte, and counts its records from 1 as the server
 * does: lines end with LF or CRLF, empty ones are none. One slice of the file is in memory.
 * @param take gets the parts of each slice in their order
 * @returns how many records there are
 */
export async function cutRecords(file: Blob, wanted: ReadonlySet<number>, take: (parts: Bytes[]) => void, sliceBytes = SLICE_BYTES): Promise<number> {
  let bytes: Bytes = new Uint8Array();
  let columns: number | undefined;
  /** The number of the record that comes next; 0 is the header. */
  let index = 0;
  /** Whether the rest of a line that is too long is being skipped. */
  let isPassing = false;
  for (let position = 0, isLast = false; !isLast; position += sliceBytes) {
    isLast = position + sliceBytes >= file.size;
    const read = new Uint8Array(await file.slice(position, position + sliceBytes).arrayBuffer());
    const { length } = bytes;
    const fileEnd = length + read.length;
    const joined = new Uint8Array(fileEnd + (isLast ? 1 : 0));
    joined.set(bytes);
    joined.set(read, length);
    if (isLast) joined[fileEnd] = NEWLINE;
    const parts: Bytes[] = [];
    let at = 0;
    const cut = (next: number) => {
      if (index === 0 || wanted.has(index)) parts.push(joined.subarray(at, Math.min(next, fileEnd)));
      at = next;
    };
    if (position === 0 && joined[0] === 0xef && joined[1] === 0xbb && joined[2] === 0xbf) cut(3);
    for (;;) {
      const newline = joined.indexOf(NEWLINE, at);
      const lineEnd = newline < 0 ? joined.length : newline > at && joined[newline - 1] === RETURN ? newline - 1 : newline;
      // Without the newline, the last byte may be the CR of a CRLF, which does not count.
      if (isPassing || lineEnd - at > MAX_RECORD_BYTES + (newline < 0 ? 1 : 0)) {
        isPassing = newline < 0;
        cut(newline < 0 ? joined.length : newline + 1);
        if (newline < 0) break;
        index += 1;
        continue;
      }
      if (newline < 0) break;
      if (lineEnd === at) {
        at = newline + 1;
        continue;
      }
      const found = extentOf(joined, { start: at, newline, isLast }, columns);
      if (!found) break;
      columns ??= found.columns;
      cut(found.next);
      index += 1;
    }
    take(parts);
    bytes = joined.subarray(at);
  }
  return Math.max(index - 1, 0);
}

const [NEWLINE, RETURN, QUOTE, COMMA] = [0x0a, 0x0d, 0x22, 0x2c];
/** Matches a record whose fields are all blank, which counts as an empty line. */
const BLANK = /^(?:[\p{White_Space}\ufeff]*|"[\p{White_Space}\ufeff]*")(?:,(?:[\p{White_Space}\ufeff]*|"[\p{White_Space}\ufeff]*"))*$/u;
/** The greatest length of a record in bytes, without its line end, as the server has it; and with it. */
const MAX_RECORD_BYTES = 16 * 1024;
const MAX_BYTES = MAX_RECORD_BYTES + 2;
const SLICE_BYTES = 1024 ** 2;

type Bytes = Uint8Array<ArrayBuffer>;

/** Reads the record at `start`; undefined for one that is malformed or too long: it ends with its first line. */
function recordAt(bytes: Bytes, start: number, columns: number | undefined) {
  let field: 'fresh' | 'plain' | 'quoted' | 'closed' = 'fresh';
  let fields = 1;
  for (let at = start; at <= bytes.length && at < start + MAX_BYTES; at += 1) {
    const byte = bytes[at] ?? NEWLINE;
    if (field === 'quoted') {
      if (byte === QUOTE) field = 'closed';
    } else if (byte === QUOTE) {
      if (field === 'plain') return undefined;
      // After a quote that seemed to close the field, it is the second of a pair.
      field = 'quoted';
    } else if (byte === COMMA) {
      fields += 1;
      field = 'fresh';
    } else if (byte === NEWLINE) {
      const record = bytes.subarray(start, at > start && bytes[at - 1] === RETURN ? at - 1 : at);
      const isEmpty = record.every((byte) => byte <= COMMA || byte > 0x7f) && BLANK.test(new TextDecoder().decode(record));
      const isWrong = record.length > MAX_RECORD_BYTES || (!isEmpty && columns !== undefined && fields !== columns);
      return isWrong ? undefined : { next: Math.min(at + 1, bytes.length), fields, isEmpty };
    } else if (field === 'closed' && (byte !== RETURN || (bytes[at + 1] ?? NEWLINE) !== NEWLINE)) {
      return undefined;
    } else {
      field = 'plain';
    }
  }
  return undefined;
}

/**
 * Cuts the header and the wanted records out of a CSV file, byte for byte, and counts its records from 1 as the server
 * does: lines end with LF or CRLF, blank ones are none. One slice of the file is in memory.
 * @param take gets the parts of each slice in their order
 * @returns how many records there are
 */
export async function cutRecords(file: Blob, wanted: ReadonlySet<number>, take: (parts: Bytes[]) => void, sliceBytes = SLICE_BYTES): Promise<number> {
  let columns: number | undefined;
  /** The number of the record that comes next; 0 is the header. */
  let index = 0;
  /** Whether the slice begins within a line that is too long. */
  let isWithin = false;
  for (let position = 0; position < file.size; ) {
    // A record that begins within the slice is read as a whole.
    const bytes = new Uint8Array(await file.slice(position, position + sliceBytes + MAX_BYTES).arrayBuffer());
    const isLast = position + bytes.length >= file.size;
    const hasMark = position === 0 && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
    let at = hasMark ? 3 : 0;
    const parts = hasMark ? [bytes.subarray(0, at)] : [];
    while (at < (isLast ? bytes.length : sliceBytes)) {
      const record: ReturnType<typeof recordAt> = isWithin ? undefined : recordAt(bytes, at, columns);
      const newline: number = record ? record.next - 1 : bytes.indexOf(NEWLINE, at);
      const next = record?.next ?? (newline < 0 ? bytes.length : newline + 1);
      if (!record?.isEmpty) {
        if (index === 0 || wanted.has(index)) parts.push(bytes.subarray(at, next));
        columns ??= record?.fields;
        isWithin = newline < 0 && !isLast;
        if (!isWithin) index += 1;
      }
      at = next;
    }
    take(parts);
    position += at;
  }
  return Math.max(index - 1, 0);
}

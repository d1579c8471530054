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

/** A record of a file: its number (0 is the header), where it begins, and its bytes; of a line that is too long, a piece. */
export interface CsvRecord {
  index: number;
  start: number;
  bytes: Bytes;
}

/**
 * Reads the records of a CSV file, and counts them as the server does: lines end with LF or CRLF, blank ones are none. One
 * slice of the file is in memory.
 */
export async function* recordsOf(file: Blob, sliceBytes = SLICE_BYTES): AsyncGenerator<CsvRecord, void> {
  let columns: number | undefined;
  let index = 0;
  /** Whether the slice begins within a line that is too long. */
  let isWithin = false;
  for (let position = 0; position < file.size; ) {
    // A record that begins within the slice is read as a whole.
    const bytes = new Uint8Array(await file.slice(position, position + sliceBytes + MAX_BYTES).arrayBuffer());
    const isLast = position + bytes.length >= file.size;
    let at = position === 0 && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
    while (at < (isLast ? bytes.length : sliceBytes)) {
      const record: ReturnType<typeof recordAt> = isWithin ? undefined : recordAt(bytes, at, columns);
      const newline: number = record ? record.next - 1 : bytes.indexOf(NEWLINE, at);
      const next = record?.next ?? (newline < 0 ? bytes.length : newline + 1);
      if (!record?.isEmpty) {
        yield { index, start: position + at, bytes: bytes.subarray(at, next) };
        columns ??= record?.fields;
        isWithin = newline < 0 && !isLast;
        if (!isWithin) index += 1;
      }
      at = next;
    }
    position += at;
  }
}

const FIELD = '(?:"(?:[^"]|"")*"|[^",]*)';
const RECORD = new RegExp(`^${FIELD}(?:,${FIELD})*$`);

/** Returns the fields of a record; undefined where its quotes do not match, or its bytes are not UTF-8. */
export function fieldsOf(bytes: Bytes): string[] | undefined {
  const text = new TextDecoder().decode(bytes).replace(/\r?\n$/, '');
  if (text.includes('\ufffd') || !RECORD.test(text)) return undefined;
  const fields = `${text},`.match(new RegExp(`${FIELD},`, 'g')) ?? [];
  return fields.map((field) =>
    field
      .slice(0, -1)
      .replace(/^"(.*)"$/s, '$1')
      .replaceAll('""', '"'),
  );
}

/** Returns the record of these fields. */
export function recordOf(fields: readonly string[]): string {
  return `${fields.map((field) => (/[",\r\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field)).join(',')}\r\n`;
}

/**
 * Copies the header of a CSV file and, byte for byte, the records that `pick` keeps; those for which it returns a text are
 * replaced by it. Returns the copy, and how many records the file has.
 */
export async function copyOf(file: File, pick: (index: number) => boolean | string, sliceBytes?: number): Promise<{ copy: File; rows: number }> {
  const parts: (string | { start: number; end: number })[] = [];
  let rows = 0;
  for await (const { index, start, bytes } of recordsOf(file, sliceBytes)) {
    const picked = index === 0 || pick(index);
    const last = parts.at(-1);
    const from = parts.length === 0 ? 0 : start;
    const end = start + bytes.length;
    if (typeof picked === 'string' && index > rows) parts.push(picked);
    else if (picked === true && typeof last === 'object' && last.end === from) last.end = end;
    else if (picked === true) parts.push({ start: from, end });
    rows = index;
  }
  const copied = parts.map((part) => (typeof part === 'string' ? part : file.slice(part.start, part.end)));
  return { copy: new File(copied, file.name, { type: 'text/csv' }), rows };
}

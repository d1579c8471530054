/** A field, and a record at a place of a text, which has a character for each byte. */
const FIELD = '(?:=?"[^"]*(?:""[^"]*)*"|[^",\\n]*)';
const RECORD = new RegExp(`${FIELD}(?:,${FIELD})*\\r{0,2}(?:\\n|$)`, 'y');
/** Matches a record whose fields are all blank, which counts as an empty line. */
const BLANK = /^(?:[\p{White_Space}\ufeff]*|"[\p{White_Space}\ufeff]*")(?:,(?:[\p{White_Space}\ufeff]*|"[\p{White_Space}\ufeff]*"))*$/u;
/** The greatest length of a record in bytes, without its line end, as the server has it. */
const MAX_RECORD_BYTES = 16 * 1024;
const SLICE_BYTES = 1024 ** 2;

type Bytes = Uint8Array<ArrayBuffer>;

/** A record of a file: its number (0 is the header), where it begins, and its bytes; of a line that is too long, a piece. */
export interface CsvRecord {
  index: number;
  start: number;
  bytes: Bytes;
}

/**
 * Reads the records of a CSV file, and counts them as the server does: lines end with LF, CRLF or CRCRLF, blank ones are none. A
 * record that is malformed or too long ends with its first line. One slice of the file is in memory.
 */
export async function* recordsOf(file: Blob, sliceBytes = SLICE_BYTES): AsyncGenerator<CsvRecord, void> {
  let columns: number | undefined;
  let index = 0;
  /** Whether the slice begins within a line that is too long. */
  let isWithin = false;
  const [last] = new Uint8Array(await file.slice(-1).arrayBuffer());
  const size = last === END_OF_FILE ? file.size - 1 : file.size;
  for (let position = 0; position < size; ) {
    // A record that begins within the slice is read as a whole, with its line end.
    const bytes = new Uint8Array(await file.slice(position, Math.min(size, position + sliceBytes + MAX_RECORD_BYTES + 2)).arrayBuffer());
    const text = new TextDecoder('latin1').decode(bytes);
    const isLast = position + bytes.length >= size;
    let at = position === 0 && text.startsWith('\u00ef\u00bb\u00bf') ? 3 : 0;
    while (at < (isLast ? bytes.length : sliceBytes)) {
      RECORD.lastIndex = at;
      const record: string | undefined = isWithin ? undefined : RECORD.exec(text)?.[0].replace(/\r{0,2}\n?$/, '');
      const fields = record?.replaceAll(/"[^"]*"/g, '').split(',').length;
      const isBlank = record !== undefined && !/[!#-+\--~]/.test(record) && BLANK.test(new TextDecoder().decode(bytes.subarray(at, at + record.length)));
      const isWhole: boolean = record !== undefined && record.length <= MAX_RECORD_BYTES && (isBlank || columns === undefined || fields === columns);
      const newline: number = isWhole ? RECORD.lastIndex - 1 : text.indexOf('\n', at);
      const next = newline < 0 ? bytes.length : newline + 1;
      if (!isWhole || !isBlank) {
        yield { index, start: position + at, bytes: bytes.subarray(at, next) };
        if (isWhole) columns ??= fields;
        isWithin = newline < 0 && !isLast;
        if (!isWithin) index += 1;
      }
      at = next;
    }
    position += at;
  }
}

/** Ends a file of some programs of DOS and Windows. */
const END_OF_FILE = 0x1a;

/** Returns the fields of a record, of a formula such as `="00123"` its text; undefined where its quotes do not match, or its bytes are not UTF-8. */
export function fieldsOf(bytes: Bytes): string[] | undefined {
  const text = new TextDecoder().decode(bytes).replace(/\r{0,2}\n$/, '');
  if (text.includes('\ufffd') || !new RegExp(`^${FIELD}(?:,${FIELD})*$`).test(text)) return undefined;
  const fields = `${text},`.match(new RegExp(`${FIELD},`, 'g')) ?? [];
  return fields.map((field) =>
    field
      .replace(/^=?"(.*)",$|,$/s, '$1')
      .replaceAll('""', '"')
      .replace(/^="((?:[^"]|"")*)"$/, (_, inner: string) => inner.replaceAll('""', '"')),
  );
}

/** Returns what is probably meant by a record: its fields, or what stands between its commas. */
export function guessedFieldsOf(bytes: Bytes): string[] {
  return fieldsOf(bytes) ?? new TextDecoder().decode(bytes).replaceAll('"', '').trim().split(',');
}

/** Returns the record of these fields. */
export function recordOf(fields: readonly string[]): string {
  return `${fields.map((field) => (/[",\r\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field)).join(',')}\r\n`;
}

/**
 * Copies the header of a CSV file and, byte for byte, the records that `pick` keeps; those for which it returns a text are
 * replaced by it. Returns the copy, and how many records the file has.
 */
export async function copyOf(file: File, pick: (index: number, bytes: Bytes) => boolean | string, sliceBytes?: number): Promise<{ copy: File; rows: number }> {
  const parts: (string | { start: number; end: number })[] = [];
  let rows = 0;
  for await (const { index, start, bytes } of recordsOf(file, sliceBytes)) {
    const picked = pick(index, bytes) || index === 0;
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

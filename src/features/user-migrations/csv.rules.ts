import { isUtf8 } from 'node:buffer';
import { trimmed } from '../../lib/identifier-key.ts';
import { camelName } from '../../lib/spelling.ts';
import { invalidInput } from '../../platform/errors.ts';
import { type MigrateUserInput, walletInput } from './migration.input.ts';

const NEWLINE = 0x0a;
const RETURN = 0x0d;
/** The greatest number of CRs before the LF of a line end. */
const RETURNS = 2;
const QUOTE = 0x22;
const COMMA = 0x2c;
const EQUALS = 0x3d;
/** Ends a file of some programs of DOS and Windows. */
const END_OF_FILE = 0x1a;

/** A range of bytes, without the byte at `end`. */
export interface ByteRange {
  start: number;
  end: number;
}

/**
 * The fields of a CSV record without the quotes around them, its end and the start of the next one, as byte offsets; or
 * what is wrong with it, as a text for the file's sender.
 */
type QuotedRecord = { ranges: ByteRange[]; end: number; next: number } | { fault: string };

const STRAY: QuotedRecord = {
  fault: 'has a quote inside an unquoted field: enclose the field in quotes, and double each quote in it',
};

/**
 * Parses the CSV record at the start of the bytes; `="00123"` is read as `"00123"`. Undefined when they do not contain all
 * of it and its line end.
 */
function quotedRecord(bytes: Buffer): QuotedRecord | undefined {
  const ranges: ByteRange[] = [];
  for (let at = 0; ; ) {
    const quote = bytes[at] === EQUALS ? at + 1 : at;
    const isQuoted = bytes[quote] === QUOTE;
    const range = isQuoted ? quotedRange(bytes, quote + 1) : plainRange(bytes, at);
    if (range === undefined) return undefined;
    if (range === 'stray') return STRAY;
    ranges.push(range);
    const after = isQuoted ? range.end + 1 : range.end;
    if (bytes[after] === COMMA) {
      at = after + 1;
      continue;
    }
    let newline = after;
    while (bytes[newline] === RETURN && newline - after < RETURNS) newline += 1;
    if (newline >= bytes.length) return undefined;
    return bytes[newline] === NEWLINE ? { ranges, end: after, next: newline + 1 } : STRAY;
  }
}

/** Finds the end of a quoted field. Undefined when the bytes end before the byte after its closing quote. */
function quotedRange(bytes: Buffer, start: number): ByteRange | undefined {
  for (let from = start; ; ) {
    const quote = bytes.indexOf(QUOTE, from);
    if (quote < 0 || quote + 1 >= bytes.length) return undefined;
    if (bytes[quote + 1] !== QUOTE) return { start, end: quote };
    from = quote + 2;
  }
}

/** Returns where a line ends before its line end: LF, CRLF, or the CRCRLF of a program that converts line ends twice. */
function lineEnd(bytes: Buffer, start: number, newline: number): number {
  let end = newline;
  while (end > start && newline - end < RETURNS && bytes[end - 1] === RETURN) end -= 1;
  return end;
}

/** Finds the end of an unquoted field: a comma or a line end. Undefined when the bytes end before it. */
function plainRange(bytes: Buffer, start: number): ByteRange | 'stray' | undefined {
  for (let at = start; at < bytes.length; at += 1) {
    switch (bytes[at]) {
      case QUOTE:
        return 'stray';
      case COMMA:
        return { start, end: at };
      case NEWLINE:
        return { start, end: lineEnd(bytes, start, at) };
      default:
    }
  }
  return undefined;
}

/** The greatest length of a CSV record in bytes, without its line end. */
export const MAX_RECORD_BYTES = 16 * 1024;

/** A CSV record: its fields, or what is wrong with it, as a text for the file's sender. */
export type CsvRecord = { fields: string[] } | { fault: string };

/** The byte range of a CSV record. `ranges` are its fields; undefined when the record has no quotes. */
interface RecordBounds {
  start: number;
  end: number;
  next: number;
  ranges: readonly ByteRange[] | undefined;
  fault: string | undefined;
}
const REPLACED = '\ufffd';
const TOO_LONG = 'has more than 16 KiB';
const UNCLOSED = 'has a quote that is not closed';
/** The greatest length of a line end, in bytes. */
const LINE_END_BYTES = RETURNS + 1;
/** Matches a record whose fields are all blank, or that ends a file of DOS. */
const BLANK =
  /^(?:[\p{White_Space}\ufeff\cZ]*|"[\p{White_Space}\ufeff]*")(?:,(?:[\p{White_Space}\ufeff]*|"[\p{White_Space}\ufeff]*"))*$/u;

/**
 * Parses a CSV file (RFC 4180) in UTF-8 that arrives in chunks, one record at a time. Lines end with LF, CRLF or CRCRLF; empty
 * lines are skipped, and so are records whose fields are all blank. A malformed record ends with the line on which it
 * began, even with an open quote, so it never swallows others. One chunk and one record are in memory; the time is
 * linear in the number of bytes.
 */
export class CsvRecords {
  /**
   * The names of the columns; undefined accepts any fields. A record on one line may omit trailing fields, one over
   * several lines must have every field. A field without a name must be blank.
   */
  columns: readonly string[] | undefined;
  #bytes: Buffer = Buffer.alloc(0);
  #at = 0;
  #quoteAt = -1;
  /** The position in the file of the first byte in memory. */
  #offset: number;
  /** The position in the file up to which chunks have been pushed, in bytes. */
  #size: number;
  #isEnded = false;
  /** Whether the rest of a line that is too long is being skipped. */
  #isPassing = false;
  /** The position in the file at which the last record begins, in bytes. */
  #recordStart = 0;

  /**
   * @param position The position in the file where the first chunk begins, in bytes; it must be the start of a record.
   */
  constructor(position = 0, columns?: readonly string[]) {
    this.#offset = position;
    this.#size = position;
    this.columns = columns;
  }

  /** The position in the file, in bytes, at which the next record begins, or empty lines before it. */
  get position(): number {
    return Math.min(this.#offset + this.#at, this.#size);
  }

  /** The bytes in the file of the last record, with its line end. */
  get range(): ByteRange {
    return { start: this.#recordStart, end: this.position };
  }

  /** Adds the next chunk of the file once `nextRecord` returns undefined. The chunk must not be changed afterwards. */
  push(part: Buffer): void {
    this.#size += part.length;
    this.#append(part);
  }

  /** Marks the end of the file. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    if (this.#bytes.at(-1) === END_OF_FILE) this.#bytes = this.#bytes.subarray(0, -1);
    this.#append(Buffer.of(NEWLINE));
  }

  /** Returns the next CSV record; undefined when it needs more chunks or none is left. */
  nextRecord(): CsvRecord | undefined {
    const bounds = this.#find();
    if (!bounds) return undefined;
    const { start, end, ranges, fault } = bounds;
    if (fault !== undefined) return { fault };
    const fields = ranges
      ? this.#textsOf(ranges).map((field) => FORMULA.exec(field)?.[1]?.replaceAll('""', '"') ?? field)
      : this.#bytes.toString('utf8', start, end).split(',');
    if (fields.some((field) => field.includes(REPLACED)) && !isUtf8(this.#bytes.subarray(start, end))) {
      return { fault: 'is not UTF-8' };
    }
    const columns = this.columns ?? fields;
    const unnamed = fields.findIndex((field, at) => !columns[at] && trimmed(field) !== '');
    if (unnamed < 0) return { fields };
    return {
      fault:
        unnamed >= columns.length
          ? countFault(fields, columns)
          : `has a value in column ${unnamed + 1}, which has no name in the header`,
    };
  }

  /** Skips the record that `nextRecord` would return; returns false when there is none. */
  skip(): boolean {
    return this.#find() !== undefined;
  }

  #find(): RecordBounds | undefined {
    for (;;) {
      const start = this.#at;
      const newline = this.#bytes.indexOf(NEWLINE, start);
      if (!this.#isPassing) this.#recordStart = this.#offset + start;
      const end = newline < 0 ? this.#bytes.length : lineEnd(this.#bytes, start, newline);
      // Without the newline, the last bytes may be CRs of a line end, which do not count.
      if (this.#isPassing || end - start > MAX_RECORD_BYTES + (newline < 0 ? RETURNS : 0)) {
        this.#isPassing = newline < 0;
        this.#at = newline < 0 ? end : newline + 1;
        if (newline < 0) return undefined;
        return { start, end, next: this.#at, ranges: undefined, fault: TOO_LONG };
      }
      if (newline < 0) return undefined;
      const line: RecordBounds = { start, end, next: newline + 1, ranges: undefined, fault: undefined };
      const bounds = this.#nextQuote(start) < newline ? this.#findQuoted(line) : line;
      if (!bounds) return undefined;
      this.#at = bounds.next;
      if (bounds.fault !== undefined || !this.#isBlank(bounds)) return bounds;
    }
  }

  /** Finds the CSV record that begins with a line that contains a quote; undefined when more chunks are needed. */
  #findQuoted(line: RecordBounds): RecordBounds | undefined {
    const window = this.#bytes.subarray(line.start, line.start + MAX_RECORD_BYTES + LINE_END_BYTES);
    const record = quotedRecord(window);
    if (!record) {
      const isAll = this.#isEnded || window.length === MAX_RECORD_BYTES + LINE_END_BYTES;
      return isAll ? { ...line, fault: UNCLOSED } : undefined;
    }
    if ('fault' in record) return { ...line, fault: record.fault };
    if (record.end > MAX_RECORD_BYTES) return { ...line, fault: UNCLOSED };
    const end = line.start + record.end;
    const next = line.start + record.next;
    const { columns } = this;
    // With a wrong number of fields, a quote was probably left open: the further lines are then separate records.
    const isWrong = next > line.next && columns && record.ranges.length !== columns.length;
    if (isWrong && !this.#isBlank({ start: line.start, end }))
      return { ...line, fault: countFault(record.ranges, columns) };
    const ranges = record.ranges.map((range) => ({ start: range.start + line.start, end: range.end + line.start }));
    return { start: line.start, end, next, ranges, fault: undefined };
  }

  #nextQuote(from: number): number {
    if (this.#quoteAt < from) {
      const index = this.#bytes.indexOf(QUOTE, from);
      this.#quoteAt = index < 0 ? Number.POSITIVE_INFINITY : index;
    }
    return this.#quoteAt;
  }

  #textsOf(ranges: readonly ByteRange[]): string[] {
    // Only a field within quotes contains any, and they are doubled.
    return ranges.map(({ start, end }) => this.#bytes.toString('utf8', start, end).replaceAll('""', '"'));
  }

  #isBlank({ start, end }: Pick<RecordBounds, 'start' | 'end'>): boolean {
    const first = this.#bytes[start] ?? 0;
    // Blanks, quotes and commas of ASCII are all below the other characters that a record begins with.
    if (first > COMMA && first <= 0x7f) return false;
    return BLANK.test(this.#bytes.toString('utf8', start, end));
  }

  #append(part: Buffer): void {
    const unreadBytes = this.#bytes.subarray(this.#at);
    this.#offset += this.#at;
    this.#bytes = unreadBytes.length === 0 ? part : Buffer.concat([unreadBytes, part]);
    this.#at = 0;
    this.#quoteAt = -1;
  }
}

/** Matches a formula that is only a text, such as `="00123"`: spreadsheets write it to keep zeros. */
const FORMULA = /^="((?:[^"]|"")*)"$/;

function countFault({ length }: readonly unknown[], columns: readonly string[]): string {
  return `has ${length} ${length === 1 ? 'field' : 'fields'}, not ${columns.length}`;
}

/** The columns that a file can have, by their REST names. */
export const CSV_COLUMNS = ['wallet_address', 'email', 'external_id', 'name', 'surname', 'kyc_sent'] as const;

type CsvColumn = (typeof CSV_COLUMNS)[number];

/**
 * One row of a file: a user to migrate, or what is wrong with the row, with its email and external id if they could be
 * read.
 */
export type FileRow =
  | { index: number; input: MigrateUserInput; fault?: undefined }
  | { index: number; fault: string; email: string | undefined; externalId: string | undefined };

const BY_NAME = new Map<string, CsvColumn>(
  CSV_COLUMNS.flatMap((column) => [[column, column] as const, [camelName(column), column] as const]),
);
const KNOWN = CSV_COLUMNS.join(', ');
const LONG = /^(.{40}).+$/s;
const BOOLEANS = new Map([
  ['true', true],
  ['false', false],
  ['', false],
]);

const CR_ALONE = 'ends its lines with a single CR: save it with LF or CRLF line endings';
/**
 * The formats that programs save in place of CSV in UTF-8, by how a file begins (in Latin-1), and how to correct each.
 */
const OTHER_FORMATS: readonly (readonly [RegExp, string])[] = [
  [/^(?:PK[^ -~\s]|\xd0\xcf)/, 'is a workbook (.xlsx, .ods, .xls): save it as CSV in UTF-8'],
  [/^(?:\xff\xfe|\xfe\xff|\0[^\0]|[^\0]\0)/, 'is in UTF-16: save it as CSV in UTF-8'],
  [/^(?:\xef\xbb\xbf)?"?sep=/i, 'begins with a line sep=: delete it, and separate fields by commas'],
  [/^[^\n]*\r(?!\n|$)/, CR_ALONE],
];
const SEPARATORS = /^[^\n]*[;\t|]/;

/**
 * Returns the columns that a header names, in its order; it may use the names of REST or of GraphQL. A column with a
 * blank name is ''. `head` is the beginning of the file in Latin-1.
 * @throws Refusal `invalid_input` when the header is missing or malformed, with a message that says what to change.
 */
export function columnsOf(header: CsvRecord | undefined, head: string): (CsvColumn | '')[] {
  const fileFault = (fault: string) => {
    const [, other] = OTHER_FORMATS.find(([beginning]) => beginning.test(head)) ?? [];
    const message = other ?? `${fault}${SEPARATORS.test(head) ? '; fields are separated by commas' : ''}`;
    return invalidInput('file', message);
  };
  if (!header) throw fileFault(`is empty: its first line must name the columns, ${KNOWN}`);
  if ('fault' in header)
    throw fileFault(`has a header that ${header.fault}: write the names of columns, ${KNOWN}, in UTF-8`);
  const columns = header.fields.map((field) => {
    const name = trimmed(field);
    const column = name === '' ? name : BY_NAME.get(name);
    if (column === undefined)
      throw fileFault(`has the unknown column ${JSON.stringify(name.replace(LONG, '$1…'))}: use any of ${KNOWN}`);
    return column;
  });
  const twice = columns.find((column, at) => column !== '' && columns.indexOf(column) !== at);
  if (twice) throw fileFault(`has the column ${twice} twice: name it once`);
  if (!columns.includes('wallet_address')) throw fileFault('lacks the column wallet_address: add it');
  return columns;
}

/**
 * Checks the line ends behind the header. `data` is the beginning of what follows it, in Latin-1.
 * @throws Refusal `invalid_input` when that is a single line with a CR inside, outside of quotes. In one of several
 * lines, such a CR is data.
 */
export function requireLineEnds(data: string): void {
  const [line = '', ...otherLines] = data
    .replace(/"[^"]*"?/g, '"')
    .split('\n')
    .filter((text) => !BLANK.test(text));
  if (otherLines.length === 0 && trimmed(line).includes('\r')) throw invalidInput('file', CR_ALONE);
}

/** Converts a CSV record into the row with this index, counted from 1. */
export function fileRowOf(record: CsvRecord, columns: readonly string[], index: number): FileRow {
  if ('fault' in record) {
    return { index, fault: `line ${index}: ${record.fault}`, email: undefined, externalId: undefined };
  }
  const at = (column: CsvColumn) => record.fields[columns.indexOf(column)];
  const [email, externalId] = [at('email'), at('external_id')];
  const wallet = walletInput.safeParse(at('wallet_address') ?? '');
  const kycSent = BOOLEANS.get(trimmed(at('kyc_sent') ?? '').toLowerCase());
  if (!wallet.success || kycSent === undefined) {
    const fault = wallet.error ? `wallet_address ${wallet.error.issues[0]?.message}` : 'kyc_sent must be true or false';
    return { index, fault: `line ${index}: ${fault}`, email, externalId };
  }
  const identifiers = { wallet_address: wallet.data, email, external_id: externalId };
  return { index, input: { ...identifiers, name: at('name'), surname: at('surname'), kyc_sent: kycSent } };
}

import { isUtf8 } from 'node:buffer';
import { hasForbiddenText } from '../../lib/json.ts';
import { RefusalError } from '../../platform/errors.ts';
import type { MigrateUserInput } from './migration.input.ts';

const NEWLINE = 0x0a;
const RETURN = 0x0d;
const QUOTE = 0x22;
const COMMA = 0x2c;

/** A field's bytes, without the quotes around it, and whether it has doubled ones inside. */
export interface Span {
  start: number;
  end: number;
  hasQuotes: boolean;
}

/** The fields of a record, where it ends and where the next one begins; or what is wrong with it, for its sender. */
type QuotedRecord = { spans: Span[]; end: number; next: number } | { fault: string };

const STRAY: QuotedRecord = {
  fault: 'has a quote inside of a field: a field with quotes is quoted, and they are doubled',
};

/** The record that begins with these bytes; undefined where they do not hold all of it and of its line end. */
function quotedRecord(bytes: Buffer): QuotedRecord | undefined {
  const spans: Span[] = [];
  for (let at = 0; ; ) {
    const isQuoted = bytes[at] === QUOTE;
    const span = isQuoted ? quotedSpan(bytes, at + 1) : plainSpan(bytes, at);
    if (span === undefined) return undefined;
    if (span === 'stray') return STRAY;
    spans.push(span);
    const after = isQuoted ? span.end + 1 : span.end;
    if (bytes[after] === COMMA) {
      at = after + 1;
      continue;
    }
    const newline = bytes[after] === RETURN ? after + 1 : after;
    if (newline >= bytes.length) return undefined;
    return bytes[newline] === NEWLINE ? { spans, end: after, next: newline + 1 } : STRAY;
  }
}

/** A quoted field, up to its closing quote, after which there is one byte at least. */
function quotedSpan(bytes: Buffer, start: number): Span | undefined {
  let hasQuotes = false;
  for (let from = start; ; ) {
    const quote = bytes.indexOf(QUOTE, from);
    if (quote < 0 || quote + 1 >= bytes.length) return undefined;
    if (bytes[quote + 1] !== QUOTE) return { start, end: quote, hasQuotes };
    hasQuotes = true;
    from = quote + 2;
  }
}

/** A field without quotes, up to its comma or line end. */
function plainSpan(bytes: Buffer, start: number): Span | 'stray' | undefined {
  for (let at = start; at < bytes.length; at += 1) {
    switch (bytes[at]) {
      case QUOTE:
        return 'stray';
      case COMMA:
        return { start, end: at, hasQuotes: false };
      case NEWLINE:
        return { start, end: bytes[at - 1] === RETURN && at > start ? at - 1 : at, hasQuotes: false };
      default:
    }
  }
  return undefined;
}

/** A record can have this many bytes, without its line end. */
export const MAX_RECORD_BYTES = 16 * 1024;

/** A record of a CSV file: its fields, or in words for its sender why it has none. */
export type CsvRecord = { fields: string[] } | { fault: string };

/** Where a record is. `spans` are its fields, of a record without quotes undefined. */
interface Found {
  start: number;
  end: number;
  next: number;
  spans: readonly Span[] | undefined;
  fault: string | undefined;
}
const REPLACED = '\ufffd';
const TOO_LONG = 'has more than 16 KiB';
const UNCLOSED = 'has a quote that is not closed';
/** What can follow the bytes of a record: CRLF. */
const LINE_END_BYTES = 2;

/**
 * The records of a CSV file (RFC 4180) in UTF-8, one by one, while the file comes in parts. Lines end with LF or CRLF;
 * empty ones are no records. A record at fault ends with the line it began on, whatever quotes it has opened: it never
 * takes others with it. What is held is a part and a record, and the time is linear in the bytes.
 */
export class CsvRecords {
  /** How many fields a record must have; undefined: any number. */
  columns: number | undefined;
  #bytes: Buffer = Buffer.alloc(0);
  #at = 0;
  #quoteAt = -1;
  /** Where in the file the first of the bytes is, and where it ends as far as known. */
  #offset: number;
  #size: number;
  #isEnded = false;
  /** It is inside of a line that is too long, and holds nothing of it. */
  #isPassing = false;

  /** `position` is where in the file the first part begins: at a record. */
  constructor(position = 0, columns?: number) {
    this.#offset = position;
    this.#size = position;
    this.columns = columns;
  }

  /** Where in the file the next record begins, or later empty lines. */
  get position(): number {
    return Math.min(this.#offset + this.#at, this.#size);
  }

  /** Takes the next part of the file, which is not to change, once there is nothing to take of the ones before. */
  push(part: Buffer): void {
    this.#size += part.length;
    this.#append(part);
  }

  /** There are no more parts. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#append(Buffer.of(NEWLINE));
  }

  /** The next record; undefined where that needs more parts, or none is left. */
  take(): CsvRecord | undefined {
    const found = this.#find();
    if (!found) return undefined;
    const { start, end, spans, fault } = found;
    if (fault !== undefined) return { fault };
    const fields = spans ? this.#textsOf(spans) : this.#bytes.toString('utf8', start, end).split(',');
    if (fields.some((field) => field.includes(REPLACED)) && !isUtf8(this.#bytes.subarray(start, end))) {
      return { fault: 'is not UTF-8' };
    }
    const wrong = this.#wrongCount(fields.length);
    return wrong === undefined ? { fields } : { fault: wrong };
  }

  /** Goes over the next record, which `take` would have given; false where there is none. */
  skip(): boolean {
    return this.#find() !== undefined;
  }

  #find(): Found | undefined {
    for (;;) {
      const start = this.#at;
      const newline = this.#bytes.indexOf(NEWLINE, start);
      const end = newline < 0 ? this.#bytes.length : this.#lineEnd(start, newline);
      // Before its end is known, the last byte may be the first of CRLF.
      if (this.#isPassing || end - start > MAX_RECORD_BYTES + (newline < 0 ? 1 : 0)) {
        this.#isPassing = newline < 0;
        this.#at = newline < 0 ? end : newline + 1;
        if (newline < 0) return undefined;
        return { start, end, next: this.#at, spans: undefined, fault: TOO_LONG };
      }
      if (newline < 0) return undefined;
      const line: Found = { start, end, next: newline + 1, spans: undefined, fault: undefined };
      const found = this.#nextQuote(start) < newline ? this.#findQuoted(line) : line;
      if (!found) return undefined;
      this.#at = found.next;
      if (end > start) return found;
    }
  }

  /** The record that begins with a line which has a quote; undefined where not all of it is there. */
  #findQuoted(line: Found): Found | undefined {
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
    // Behind a quote that was left open its other lines are records of their own.
    const wrong = next > line.next ? this.#wrongCount(record.spans.length) : undefined;
    if (wrong !== undefined) return { ...line, fault: wrong };
    const spans = record.spans.map((span) => ({
      ...span,
      start: span.start + line.start,
      end: span.end + line.start,
    }));
    return { start: line.start, end, next, spans, fault: undefined };
  }

  #lineEnd(start: number, newline: number): number {
    return newline > start && this.#bytes[newline - 1] === RETURN ? newline - 1 : newline;
  }

  #nextQuote(from: number): number {
    if (this.#quoteAt < from) {
      const found = this.#bytes.indexOf(QUOTE, from);
      this.#quoteAt = found < 0 ? Number.POSITIVE_INFINITY : found;
    }
    return this.#quoteAt;
  }

  #textsOf(spans: readonly Span[]): string[] {
    return spans.map(({ start, end, hasQuotes }) => {
      const text = this.#bytes.toString('utf8', start, end);
      return hasQuotes ? text.replaceAll('""', '"') : text;
    });
  }

  #wrongCount(fields: number): string | undefined {
    if (this.columns === undefined || fields === this.columns) return undefined;
    return `has ${fields} ${fields === 1 ? 'field' : 'fields'}, not ${this.columns}`;
  }

  #append(part: Buffer): void {
    const rest = this.#bytes.subarray(this.#at);
    this.#offset += this.#at;
    this.#bytes = rest.length === 0 ? part : Buffer.concat([rest, part]);
    this.#at = 0;
    this.#quoteAt = -1;
  }
}

/** The columns that a file can have, by the names of REST. */
const CSV_COLUMNS = ['wallet_address', 'email', 'external_id', 'name', 'surname', 'kyc_sent'] as const;

type CsvColumn = (typeof CSV_COLUMNS)[number];

/** A data row of a file: a user to migrate, or why it is none, with what identifies it as far as known. */
export type FileRow =
  | { index: number; input: MigrateUserInput; fault?: undefined }
  | { index: number; fault: string; email: string | undefined; externalId: string | undefined };

const BY_NAME = new Map<string, CsvColumn>(
  CSV_COLUMNS.flatMap((column) => [[column, column] as const, [camelCase(column), column] as const]),
);
const KNOWN = CSV_COLUMNS.join(', ');
const SHOWN = 40;
const BOOLEANS = new Map([
  ['true', true],
  ['false', false],
  ['', false],
]);

/**
 * The columns that a header names, in its order; names are those of REST or of GraphQL.
 * @throws RefusalError `invalid` for a header that does not hold, which says what to change.
 */
export function columnsOf(header: CsvRecord | undefined): CsvColumn[] {
  if (!header) throw fileFault(`is empty: its first line names the columns, ${KNOWN}`);
  if ('fault' in header)
    throw fileFault(`has a header that ${header.fault}: write the names of columns, ${KNOWN}, in UTF-8`);
  const columns = header.fields.map((name) => {
    const column = BY_NAME.get(name.trim());
    if (column) return column;
    const separator = /[;\t|]/.test(name) ? '; fields are separated by commas' : '';
    throw fileFault(`has the unknown column ${shown(name.trim())}: name some of ${KNOWN}${separator}`);
  });
  const twice = columns.find((column, at) => columns.indexOf(column) !== at);
  if (twice) throw fileFault(`has the column ${twice} twice: name it once`);
  if (!columns.includes('wallet_address')) throw fileFault('lacks the column wallet_address: add it');
  return columns;
}

/** The data row of a record, numbered from 1. */
export function fileRowOf(record: CsvRecord, columns: readonly string[], index: number): FileRow {
  if ('fault' in record) {
    return { index, fault: `line ${index}: ${record.fault}`, email: undefined, externalId: undefined };
  }
  const at = (column: CsvColumn) => record.fields[columns.indexOf(column)];
  const wallet = at('wallet_address') ?? '';
  const [email, externalId] = [at('email'), at('external_id')];
  const walletAtFault = walletFault(wallet);
  if (walletAtFault !== undefined) {
    return { index, fault: `line ${index}: wallet_address ${walletAtFault}`, email, externalId };
  }
  const kycSent = BOOLEANS.get((at('kyc_sent') ?? '').trim().toLowerCase());
  if (kycSent === undefined) {
    return { index, fault: `line ${index}: kyc_sent must be true or false`, email, externalId };
  }
  const identifiers = { wallet_address: wallet.trim(), email, external_id: externalId };
  return { index, input: { ...identifiers, name: at('name'), surname: at('surname'), kyc_sent: kycSent } };
}

/** What a bulk request would be refused for as a whole. */
function walletFault(wallet: string): string | undefined {
  if (hasForbiddenText(wallet)) return 'must not contain U+0000 or a lone surrogate';
  return wallet.trim() === '' ? 'must not be blank' : undefined;
}

function fileFault(message: string): RefusalError {
  return new RefusalError({ kind: 'invalid', path: 'file', message });
}

function shown(name: string): string {
  return JSON.stringify(name.length > SHOWN ? `${name.slice(0, SHOWN)}…` : name);
}

function camelCase(name: string): string {
  return name.replace(/_([a-z])/g, (_match, letter: string) => letter.toUpperCase());
}

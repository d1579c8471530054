import { isUtf8 } from 'node:buffer';
import { quotedRecord, type Span } from './csv-quotes.rules.ts';

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

const NEWLINE = 0x0a;
const RETURN = 0x0d;
const QUOTE = 0x22;
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
    return this.#isWrong(fields.length) ? { fault: this.#wrongCount(fields.length) } : { fields };
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
    if (next > line.next && this.#isWrong(record.spans.length)) {
      return { ...line, fault: this.#wrongCount(record.spans.length) };
    }
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

  #isWrong(fields: number): boolean {
    return this.columns !== undefined && fields !== this.columns;
  }

  #wrongCount(fields: number): string {
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

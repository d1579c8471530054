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
export type QuotedRecord = { spans: Span[]; end: number; next: number } | { fault: string };

const STRAY: QuotedRecord = {
  fault: 'has a quote inside of a field: a field with quotes is quoted, and they are doubled',
};

/** The record that begins with these bytes; undefined where they do not hold all of it and of its line end. */
export function quotedRecord(bytes: Buffer): QuotedRecord | undefined {
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

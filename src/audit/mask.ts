import { StringDecoder } from 'node:string_decoder';
import { cut, maskForm } from './mask-form.ts';
import { maskEmbedded, maskJson, mayCutLabel, startsDocument } from './mask-json.ts';
import { maskValues, mayHavePassword, withoutOpenUserinfo } from './mask-values.ts';
import { SECRETS, type SecretNames } from './masked-names.ts';

interface MaskingOptions {
  /** The longest text to return, in UTF-16 units; masking may stop there. */
  maxLength: number;
  secrets: SecretNames;
  /** The names of members to mask in JSON in addition to secret keys. */
  names?: ReadonlySet<string> | undefined;
}

const LINE_END = /(\r\n|\n|\r)/;
const STREAM_FIELDS = ['', 'event', 'id', 'retry'];

/** Masks newline-delimited JSON; drops everything after the first line that is not one whole value. */
function maskJsonLines(text: string, options: MaskingOptions): string {
  const output: string[] = [];
  let length = 0;
  for (const part of text.split(LINE_END)) {
    if (length >= options.maxLength) break;
    if (part.trim() === '') {
      output.push(part);
      continue;
    }
    const masked = maskJson(part, options);
    output.push(masked.text);
    length += masked.text.length;
    if (masked.end !== 'complete') break;
  }
  return output.join('');
}

/** Masks free text, or JSON where the text is a JSON document. */
function maskPlain(text: string, { secrets }: MaskingOptions): string {
  return startsDocument(text) ? maskEmbedded(text, secrets) : secrets.maskText(text);
}

/**
 * Masks `text/event-stream` (HTML standard section 9.2.6): joins the `data` lines of an event, as a client does, and
 * masks them as one text. Drops lines of unknown fields, which clients ignore.
 */
function maskEventStream(text: string, options: MaskingOptions): string {
  const parts = text.split(LINE_END);
  const output: string[] = [];
  let event: Line[] = [];
  let length = 0;
  for (let at = 0; at < parts.length && length < options.maxLength; at += 2) {
    const line = { text: parts[at] ?? '', end: parts[at + 1] ?? '' };
    event.push(line);
    if (line.text !== '' && at + 2 < parts.length) continue;
    const masked = maskEvent(event, options);
    output.push(masked);
    length += masked.length;
    event = [];
  }
  return output.join('');
}

type Line = { text: string; end: string };

function maskEvent(lines: Line[], options: MaskingOptions): string {
  const payload = lines.flatMap((line) => dataOf(line.text) ?? []).join('\n');
  const { names, secrets } = options;
  const masked = names ? maskJson(payload, { names, secrets }).text : maskPlain(payload, options);
  let data = masked === payload ? undefined : masked.split('\n');
  let output = '';
  for (const line of lines) {
    if (dataOf(line.text) === undefined) output += maskOtherLine(line, secrets);
    else if (data === undefined) output += line.text + line.end;
    else {
      output += data.map((part) => `data: ${part}${line.end}`).join('');
      data = [];
    }
  }
  return output;
}

function maskOtherLine(line: Line, secrets: SecretNames): string {
  if (line.text === '') return line.end;
  const colon = line.text.indexOf(':');
  if (colon === -1 || !STREAM_FIELDS.includes(line.text.slice(0, colon))) return '';
  return secrets.maskText(line.text) + line.end;
}

function dataOf(line: string): string | undefined {
  return line === 'data' ? '' : /^\uFEFF?data: ?(.*)$/s.exec(line)?.[1];
}

type MaskBodyOptions = Pick<MaskingOptions, 'names'> & {
  /** The longest text to return, in bytes of UTF-8. */
  maxBytes: number;
  /** Whether the body is only a prefix of the real one; it may end anywhere. */
  truncated: boolean;
  /** Whether the body is known to be well-formed, so that it needs no masking unless it contains a secret's name. */
  wellFormed?: boolean;
  secrets?: SecretNames | undefined;
};

type Mask = (text: string, options: MaskingOptions) => string;

const JSON_TYPES = new Set(['application/json', 'text/json']);
/** Matches the first part of a multipart body, whose type may have been lost. */
const PARTS_START = /(?:^|\n)\s*--[^\r\n]+\r?\n(?:[\w-]+:[^\r\n]*\r?\n){0,16}content-/i;
/** Matches the beginning of XML, whose type may have been lost: its names are not known. */
const XML_START = /^[\s\ufeff]*</;
/** Matches the name of a column, and no part of a form, a sentence or a document. */
const COLUMN = /^[^"{}[\]:=&<>]{1,64}$/;
/** How much of a body says what it is, in bytes. */
const HEAD_BYTES = 1_024;
const JSON_LINES_TYPES = new Set(['application/x-ndjson', 'application/ndjson', 'application/jsonl']);

/**
 * Returns the body as an audit record stores it: with secrets masked, then cut at `maxBytes` between characters. Drops
 * everything from the first syntax error on. Returns null when there is no body, or when its type has no keys to mask
 * by (multipart, binary, markup, UTF-16): then only its length may be recorded.
 */
export function maskBody(
  contentType: string | undefined,
  body: Buffer | string,
  options: MaskBodyOptions,
): string | null {
  if (body.length === 0) return null;
  const { names, secrets = SECRETS, maxBytes, truncated } = options;
  const mask = maskOf(contentType, body, secrets);
  if (mask === undefined) return null;
  const decoded = decode(body, truncated);
  // Text with NUL is text in UTF-16: names in it would not be found.
  if (mask !== maskJsonText && decoded.includes('\0')) return null;
  // PostgreSQL's type text cannot store NUL.
  const sent = decoded.replaceAll('\0', '\ufffd');
  const isText = mask === maskForm || mask === maskPlain;
  const text = maskValues(truncated ? withoutOpenUserinfo(sent) : sent, !isText);
  const isWhole = options.wellFormed || isJson(mask, text, options);
  const mayHide = () =>
    mayHavePassword(text) || (truncated && mayCutLabel(text)) || secrets.mayHide(text, mask === maskJsonText);
  if (isWhole && !names?.size && !mayHide()) return cut(text, maxBytes);
  return cut(mask(text, { names, secrets, maxLength: maxBytes }), maxBytes);
}

function maskOf(contentType: string | undefined, body: Buffer | string, secrets: SecretNames): Mask | undefined {
  const type = contentType?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  if (JSON_TYPES.has(type) || type.endsWith('+json')) return maskJsonText;
  if (JSON_LINES_TYPES.has(type)) return maskJsonLines;
  if (type === 'text/event-stream') return maskEventStream;
  const head = typeof body === 'string' ? body.slice(0, HEAD_BYTES) : body.toString('utf8', 0, HEAD_BYTES);
  if (PARTS_START.test(head) || XML_START.test(head) || hasSecretColumn(head, secrets)) return undefined;
  if (type === 'text/plain') return maskPlain;
  // Clients that set no type send JSON as a form (curl -d) or without a type.
  const isDocument = startsDocument(head);
  if (type === 'application/x-www-form-urlencoded') return isDocument ? maskJsonText : maskForm;
  return type === '' && isDocument ? maskJsonText : undefined;
}

/** Checks whether a text begins with the names of columns, one of them that of a secret: CSV whose type may have been lost. */
function hasSecretColumn(head: string, secrets: SecretNames): boolean {
  const [names = '', rows] = head.split(/\r?\n/, 2);
  const columns = names.split(/[,;\t]/).map((name) => name.trim().replace(/^"(.*)"$/, '$1'));
  const isTable = rows !== undefined && columns.length > 1 && columns.every((name) => COLUMN.test(name));
  return isTable && columns.some((name) => secrets.isSecretKey(name));
}

/** Checks whether a whole text is valid JSON, which takes half the time of masking it. */
function isJson(mask: Mask, text: string, { truncated, maxBytes }: MaskBodyOptions): boolean {
  if (mask !== maskJsonText || truncated || text.length > maxBytes) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function maskJsonText(text: string, options: MaskingOptions): string {
  return maskJson(text, options).text;
}

function decode(body: Buffer | string, truncated: boolean): string {
  if (typeof body === 'string') return body;
  return truncated ? new StringDecoder('utf8').write(body) : body.toString('utf8');
}

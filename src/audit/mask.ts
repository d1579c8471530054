import { StringDecoder } from 'node:string_decoder';
import { parsedOrNone } from '../lib/json.ts';
import { maskEmbedded, maskJson, mayCutLabel, startsDocument } from './mask-json.ts';
import {
  decode,
  MASK,
  maskValues,
  mayHavePassword,
  spellingsOf,
  TOKEN_START,
  withoutBareUserinfo,
  withoutOpenUserinfo,
} from './mask-values.ts';
import { SECRETS, type SecretNames } from './masked-names.ts';
import { JWK_MEMBERS } from './secret-names.ts';

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
  const decoded = truncated && typeof body !== 'string' ? new StringDecoder('utf8').write(body) : body.toString();
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
  // Documents within the text have been written again, so that a value that was escaped may be legible now.
  return cut(maskValues(mask(text, { names, secrets, maxLength: maxBytes })), maxBytes);
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
  const mayBeValid = mask === maskJsonText && !truncated && text.length <= maxBytes;
  return mayBeValid && parsedOrNone(() => JSON.parse(text)) !== undefined;
}

function maskJsonText(text: string, options: MaskingOptions): string {
  return maskJson(text, options).text;
}

/** Matches a path or URL that ends in the name of a GraphQL endpoint. */
const GRAPHQL_PATH = /(?:^|\/)graphql(?:;[^/]*)?\/*$/i;
/** Matches the name of a GraphQL endpoint before a query or fragment. */
const GRAPHQL_ADDRESS = /(?:^|\/)graphql(?:;[^/?#]*)?\/*[?#]/i;
/** Matches what every address with a query or a fragment contains, also in escapes. */
const MAY_BE_ADDRESS = /[?#%\\]/;
/**
 * Matches the names of a GraphQL operation's parameters, those of arguments that are passwords, and others that begin
 * with one of these words.
 */
const OPERATION_PARAMETER = /^(?:query|variables|extensions|current|new)\b/i;
/** Matches a pair that is no part of a GraphQL document whose `&` was not escaped. */
const PAIR = /^[\w.[\]%-]*=|^$/;
/** Matches the name `kty`, and an escape that may spell it. */
const KEY_TYPE = /kty|%(?:6b|74|79)/i;
/** The last segment of a name: `d` of `jwk[d]`. */
const LAST_SEGMENT = /([^[\].;]*)[[\].;]*$/;
/** How many pairs of a form, and how many pieces of a header value, are compared; what follows them is masked whole. */
const MAX_PAIRS = 1_024;
const MAX_PIECES = 128;

interface FormOptions {
  secrets?: SecretNames | undefined;
  /** Masking may stop after this many UTF-16 units. */
  maxLength?: number;
  /** Whether the parameters of a GraphQL operation are masked too, and everything that is no pair. */
  isOperation?: boolean;
}

/**
 * Masks the values of secret keys in `application/x-www-form-urlencoded` text, however the keys are encoded
 * (`user[pass%77ord]`), and in values that are JSON or pairs again (`variables={…}`). All other pairs stay byte for byte.
 */
export function maskForm(text: string, options: FormOptions = {}): string {
  const { maxLength = Number.POSITIVE_INFINITY } = options;
  const mask = pairMasker(text, options);
  if (mask === undefined) return text;
  const pairs: string[] = [];
  let length = 0;
  for (const pair of piecesOf(text, '&', MAX_PAIRS)) {
    const masked = length < maxLength ? mask(pair) : undefined;
    if (masked === undefined) break;
    pairs.push(masked);
    length += masked.length + 1;
  }
  return pairs.join('&');
}

/** Masks a header value with URLs: whatever follows `?`, `#` or `&` is a pair, also in a list of them, as in `Link`. */
function maskAddresses(text: string, secrets: SecretNames): string {
  if (!MAY_BE_ADDRESS.test(text)) return text;
  const isOperation = spellingsOf(text).some((spelled) => GRAPHQL_ADDRESS.test(spelled));
  const mask = pairMasker(text, { secrets, isOperation });
  if (mask === undefined) return text;
  const address = isOperation ? GRAPHQL_ADDRESS.exec(text) : null;
  const start = address ? address.index + address[0].length - 1 : text.search(/[?#]|$/);
  const before = address ? maskAddresses(text.slice(0, start), secrets) : text.slice(0, start);
  // A document of GraphQL may have the other characters.
  const pieces = piecesOf(text.slice(start), isOperation ? /(?=&)/ : /(?=[?#&])/, MAX_PIECES);
  return before + pieces.map((piece) => piece.charAt(0) + (mask(piece.slice(1)) ?? MASK)).join('');
}

/** Divides a text; what follows `max` pieces becomes one, which is masked. */
function piecesOf(text: string, separator: string | RegExp, max: number): string[] {
  const pieces = text.split(separator, max + 1);
  return pieces.length > max ? pieces.with(-1, `&${MASK}`) : pieces;
}

/**
 * Masks a URL's query, with or without its `?`, like a form. If `path` belongs to GraphQL, or is null (unknown), the
 * parameters of the GraphQL operation are masked too.
 */
export function maskQuery(query: string, path: string | null = '', secrets: SecretNames = SECRETS): string {
  const marks = /^\?*/.exec(query)?.[0] ?? '';
  return marks + maskForm(query.slice(marks.length), { secrets, isOperation: path === null || isGraphql(path) });
}

/** Checks whether a path or URL, in any spelling, ends in the name of a GraphQL endpoint. */
export function isGraphql(path: string): boolean {
  return spellingsOf(path).some((spelled) => GRAPHQL_PATH.test(spelled));
}

/**
 * Returns what masks a pair of a text, or undefined if the text holds nothing to mask. It returns undefined when a JSON
 * document stands in place of a name, because the `&` in it do not separate pairs.
 */
function pairMasker(text: string, { secrets = SECRETS, isOperation = false }: FormOptions) {
  if (!isOperation && !secrets.mayHide(text.replaceAll('+', ' '))) return undefined;
  const isKey = KEY_TYPE.test(text);
  const isSecret = (name: string, value: string) =>
    secrets.isSecret(name, value) ||
    (isKey && Object.hasOwn(JWK_MEMBERS, LAST_SEGMENT.exec(name)?.[1] ?? '')) ||
    (isOperation && OPERATION_PARAMETER.test(name));
  return (pair: string): string | undefined => {
    if (isOperation && !PAIR.test(pair)) return MASK;
    const valueAt = pair.indexOf('=') + 1;
    if (
      decode(valueAt === 0 ? pair : pair.slice(0, valueAt))
        .trimStart()
        .startsWith('{')
    )
      return undefined;
    // Some servers separate pairs by semicolons too: `a=1;password=x`.
    for (let equals = pair.indexOf('='), parts = 0; equals !== -1; parts += 1) {
      const value = pair.slice(equals + 1);
      const name = pair.slice(pair.lastIndexOf(';', equals) + 1, equals);
      if (
        parts === MAX_PAIRS ||
        (value !== '' && spellingsOf(name).some((spelled) => isSecret(decode(spelled), value)))
      )
        return `${pair.slice(0, equals + 1)}${MASK}`;
      const semicolon = pair.indexOf(';', equals);
      equals = semicolon === -1 ? -1 : pair.indexOf('=', semicolon);
    }
    // An escape that the end of a captured body cuts off would be an error in a nested document.
    const value = decode(pair.slice(valueAt).replace(CUT_ESCAPE, ''));
    if (valueAt === 0 || !startsDocument(value)) return pair.slice(0, valueAt) + secrets.maskText(pair.slice(valueAt));
    const masked = maskValues(maskEmbedded(value, secrets), true);
    return masked === value ? pair : pair.slice(0, valueAt) + encodeURIComponent(masked);
  };
}

const CUT_MARK = '…';
const CUT_MARK_BYTES = Buffer.byteLength(CUT_MARK);

/** Matches an escape sequence that the end of the text cuts off, even if its percent sign is escaped itself. */
const CUT_ESCAPE = /(?:%(?:25)*[0-9a-f]?|(?<!\\)\\+(?:u[0-9a-f]{0,3})?)$/i;
const WORD_END = /[\s,;&?#"'<>]/;

/**
 * Masks a part of a request's head (path, query or header value) and limits it to `maxBytes` of UTF-8. Cuts it before
 * masking, so that long heads cost no more than the recorded part. Text that was cut ends in `…`.
 */
export function maskPart(text: string, maxBytes: number, mask: (text: string) => string): string {
  const readable = cutReadable(text, maxBytes);
  const shown = mask(maskValues(readable));
  const isWhole = readable === text && isWithin(shown, maxBytes);
  return isWhole ? shown : cut(shown, maxBytes - CUT_MARK_BYTES) + CUT_MARK;
}

/**
 * Cuts a text to `maxBytes` and removes from its end an incomplete escape sequence, a word that may be part of a JWT, and
 * what may be part of a URL's user and password.
 */
function cutReadable(text: string, maxBytes: number): string {
  if (isWithin(text, maxBytes)) return text;
  const cutText = withoutOpenUserinfo(cut(text, maxBytes - CUT_MARK_BYTES).replace(CUT_ESCAPE, ''));
  const word = cutText.split(WORD_END).at(-1) ?? '';
  const isSecret = (spelled: string) => TOKEN_START.test(spelled) || withoutOpenUserinfo(spelled) !== spelled;
  return spellingsOf(word).some(isSecret) ? cutText.slice(0, -word.length) : cutText;
}

function isWithin(text: string, maxBytes: number): boolean {
  return text.length * 3 <= maxBytes || (text.length <= maxBytes && Buffer.byteLength(text) <= maxBytes);
}

/** Returns the longest prefix of a text, in whole characters, that has at most `maxBytes` bytes of UTF-8. */
export function cut(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes) return text;
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(maxBytes));
  return text.slice(0, read);
}

const SECRET_HEADER = /(?:authorization|cookie)$/i;
/** Matches the subprotocols of WebSockets that are shown. Browsers can send a token in no other header: any other value may be one. */
const PROTOCOLS = /^(?:(?:^|, *)(?:graphql-(?:transport-)?ws|mqtt|soap|wamp|v\d+\.(?:json|proto)))+$/i;

/** Checks whether a header's whole value is masked. */
export function isSecretHeader(name: string, value: string, secrets: SecretNames = SECRETS): boolean {
  return /^sec-websocket-protocol$/i.test(name)
    ? !PROTOCOLS.test(value)
    : SECRET_HEADER.test(name) || secrets.isSecret(name, value);
}

/**
 * The most that an audit record stores of one header value and of all headers as JSON, in bytes; a request may have 160
 * KiB of headers.
 */
const MAX_VALUE_BYTES = 4 * 1024;
const MAX_BYTES = 16 * 1024;
/** The name under which the number of omitted headers is recorded; no real header has it. */
const LEFT_OUT = '…';
/** The bytes reserved for the JSON member that counts omitted headers, including the braces of the object. */
const LEFT_OUT_BYTES = 32;

/**
 * Returns the headers as an audit record shows them (docs/contract.md, 1-05): Authorization, cookies and every header
 * with a secret name are `***`, as are secrets and JWTs in any other header. A value over 4 KiB is cut and ends in `…`;
 * headers beyond 16 KiB in total are omitted and counted under the name `…`.
 */
export function maskHeaders(
  headers: Record<string, string | string[] | undefined>,
  secrets: SecretNames = SECRETS,
): Record<string, string | string[]> {
  const masked: [name: string, value: string | string[]][] = [];
  let freeBytes = MAX_BYTES - LEFT_OUT_BYTES;
  let leftOut = 0;
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined) continue;
    const isSecret = isSecretHeader(name, String(value), secrets);
    const read = isSecret ? 0 : lengthRead(value);
    if (read > freeBytes) {
      leftOut += 1;
      continue;
    }
    const sent = name.toLowerCase() === 'host' && typeof value === 'string' ? withoutBareUserinfo(value) : value;
    const shown = isSecret ? MASK : maskHeader(sent, secrets);
    const bytes = Buffer.byteLength(JSON.stringify([name, shown]));
    const isKept = bytes <= freeBytes;
    if (isKept) masked.push([name, shown]);
    else leftOut += 1;
    // What was searched for secrets counts against the limit, even if less of it is recorded.
    freeBytes -= isKept ? Math.max(read, bytes) : read;
  }
  if (leftOut > 0) masked.push([LEFT_OUT, `${leftOut} left out`]);
  return Object.fromEntries(masked);
}

/** Returns how many characters of a header value are searched for secrets. */
function lengthRead(value: string | string[]): number {
  return Array.isArray(value)
    ? value.reduce((sum, text) => sum + lengthRead(text), 0)
    : Math.min(value.length, MAX_VALUE_BYTES);
}

function maskHeader(value: string | string[], secrets: SecretNames): string | string[] {
  const mask = (text: string) => secrets.maskText(maskAddresses(text, secrets));
  const shown = (text: string) => maskPart(text, MAX_VALUE_BYTES, mask);
  return Array.isArray(value) ? value.map(shown) : shown(value);
}

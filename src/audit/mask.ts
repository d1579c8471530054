import { StringDecoder } from 'node:string_decoder';
import { maskForm } from './mask-form.ts';
import { maskJson, startsDocument } from './mask-json.ts';
import type { JsonRule } from './mask-json-rules.ts';
import { mayNameSecret } from './mask-keys.ts';
import { maskEventStream, maskJsonLines, maskPlain } from './mask-lines.ts';

export type MaskBodyOptions = {
  /** The longest text to return, in bytes of UTF-8. */
  maxBytes: number;
  /** The body is a prefix of the real one, which may end anywhere. */
  truncated: boolean;
  /** The body is well-formed: without a secret's name in it there is nothing to look for. */
  wellFormed?: boolean;
  /** What else is hidden of JSON. */
  rule?: JsonRule | undefined;
};

type Mask = (text: string, maxLength: number, rule: JsonRule | undefined) => string;

const JSON_TYPES = new Set(['application/json', 'text/json']);
const JSON_LINES_TYPES = new Set(['application/x-ndjson', 'application/ndjson', 'application/jsonl']);

/**
 * The body as an audit record keeps it: secrets are replaced first, then the text is cut at `maxBytes`, between
 * characters. From the first syntax error on, the rest is dropped. Null when there is no body, or when its type has
 * no keys to mask by (multipart, binary, markup): then only its length may be recorded.
 */
export function maskBody(contentType: string | undefined, body: Buffer, options: MaskBodyOptions): string | null {
  if (body.length === 0) return null;
  const mask = maskOf(contentType, body);
  if (mask === undefined) return null;
  // PostgreSQL's text holds no NUL.
  const text = decode(body, options.truncated).replaceAll('\0', '\ufffd');
  const isPlain = options.rule === undefined && !mayNameSecret(text);
  if (isPlain && (options.wellFormed || isJson(mask, text, options))) return cut(text, options.maxBytes);
  return cut(mask(text, options.maxBytes, options.rule), options.maxBytes);
}

function maskOf(contentType: string | undefined, body: Buffer): Mask | undefined {
  const type = contentType?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  if (JSON_TYPES.has(type) || type.endsWith('+json')) return maskJsonText;
  if (JSON_LINES_TYPES.has(type)) return maskJsonLines;
  if (type === 'text/event-stream') return maskEventStream;
  if (type === 'text/plain') return maskPlain;
  // Clients that set no type send JSON as a form (curl -d) or without a type.
  const isDocument = startsDocument(body.toString('utf8', 0, 256));
  if (type === 'application/x-www-form-urlencoded') return isDocument ? maskJsonText : maskFormText;
  return type === '' && isDocument ? maskJsonText : undefined;
}

/** Whether a text is JSON from its beginning to its end, in half the time that masking it takes. */
function isJson(mask: Mask, text: string, { truncated, maxBytes }: MaskBodyOptions): boolean {
  if (mask !== maskJsonText || truncated || text.length > maxBytes) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function maskJsonText(text: string, maxLength: number, rule?: JsonRule): string {
  return maskJson(text, maxLength, rule).text;
}

function maskFormText(text: string, maxLength: number): string {
  return maskForm(text, maxLength);
}

function decode(body: Buffer, truncated: boolean): string {
  return truncated ? new StringDecoder('utf8').write(body) : body.toString('utf8');
}

function cut(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes) return text;
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(maxBytes));
  return text.slice(0, read);
}

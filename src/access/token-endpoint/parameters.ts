import { isUuid } from '../../lib/input.ts';
import { decodeUtf8, Utf8Error } from '../../lib/json.ts';
import { invalidRequest } from '../../platform/errors.ts';

/**
 * Parses an `application/x-www-form-urlencoded` body. A parameter without a value counts as absent (RFC 6749 section
 * 3.1). Undefined where a name is repeated, an escape is malformed, or the text is not UTF-8.
 */
export function parseForm(bytes: Uint8Array): Record<string, string> | undefined {
  const text = utf8Of(bytes);
  const given = new Map<string, string>();
  for (const pair of text?.split('&') ?? []) {
    if (pair === '') continue;
    const [name, value] = splitOnce(pair, '=').map(decodeFormPart);
    if (name === undefined || value === undefined || given.has(name)) return undefined;
    given.set(name, value);
  }
  if (text === undefined) return undefined;
  return Object.fromEntries([...given].filter(([, value]) => value !== ''));
}

/** Decodes a form-encoded name or value: `+` is a space, `%XX` a byte of UTF-8. Undefined where it is malformed. */
function decodeFormPart(part: string): string | undefined {
  try {
    return decodeURIComponent(part.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}

/** Splits a text at the first separator; the second part is empty where there is none. */
export function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + separator.length)];
}

function utf8Of(bytes: Uint8Array): string | undefined {
  try {
    return decodeUtf8(bytes);
  } catch (error) {
    if (error instanceof Utf8Error) return undefined;
    throw error;
  }
}

const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]]/g;
const COLON = /\s*:/y;

/**
 * Returns whether the outermost object of a well-formed JSON text repeats a member: `JSON.parse` silently keeps the
 * last.
 */
export function repeatsMember(text: string): boolean {
  const names = new Set<string>();
  let depth = 0;
  for (const { 0: token, index } of text.matchAll(TOKEN)) {
    if (token === '{' || token === '[') depth += 1;
    else if (token === '}' || token === ']') depth -= 1;
    else if (depth === 1 && isFollowedByColon(text, index + token.length)) {
      const name = token.includes('\\') ? String(JSON.parse(token)) : token.slice(1, -1);
      if (names.has(name)) return true;
      names.add(name);
    }
  }
  return false;
}

function isFollowedByColon(text: string, at: number): boolean {
  COLON.lastIndex = at;
  return COLON.test(text);
}

/** The credentials of a client. */
export interface ClientCredentials {
  /** A UUID in lower case. */
  clientId: string;
  secret: string;
}

const SCHEME = /^Basic(?: |$)/i;
const BASIC = /^Basic +([A-Za-z0-9+/]+={0,2}) *$/i;

/** Returns whether an `Authorization` header uses HTTP Basic; clients use no other scheme. */
export function isBasic(authorization: string | undefined): boolean {
  return authorization !== undefined && SCHEME.test(authorization);
}

/**
 * Reads credentials from HTTP Basic (RFC 6749 section 2.3.1): id and secret are form-encoded. Undefined for what no
 * client can have.
 */
export function basicClient(authorization: string): ClientCredentials | undefined {
  const text = textOf(BASIC.exec(authorization)?.[1]);
  if (text === undefined || !text.includes(':')) return undefined;
  const [clientId, secret] = splitOnce(text, ':').map(decodeFormPart);
  if (clientId === undefined || !isUuid(clientId) || secret === undefined || secret === '') return undefined;
  return { clientId: clientId.toLowerCase(), secret };
}

function textOf(base64: string | undefined): string | undefined {
  if (base64 === undefined) return undefined;
  try {
    return decodeUtf8(Buffer.from(base64, 'base64'));
  } catch {
    return undefined;
  }
}

interface Headers {
  'content-type'?: string | undefined;
  authorization?: string | undefined;
}

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i;
const FORM_TYPE = /^application\/x-www-form-urlencoded\s*(?:;|$)/i;

/**
 * Parses the body of a request to an OAuth endpoint: JSON or a form; an absent body has no parameters.
 * @throws AppError 400 for another content type, malformed text or a repeated parameter.
 */
export function parametersOf({ 'content-type': type }: Headers, bytes: Buffer): unknown {
  if (type === undefined && bytes.length === 0) return {};
  const isForm = FORM_TYPE.test(type ?? '');
  if (!isForm && !JSON_TYPE.test(type ?? '')) {
    throw invalidRequest([
      { path: 'Content-Type', message: 'must be application/json or application/x-www-form-urlencoded' },
    ]);
  }
  const parameters = isForm ? parseForm(bytes) : parseJsonOnce(bytes);
  if (parameters === undefined) {
    throw invalidRequest([{ path: '', message: 'must be well-formed in UTF-8, with each parameter once' }]);
  }
  return parameters;
}

/** Returns whether a client sends a form or HTTP Basic, as RFC 6749 defines. */
export function isStandardRequest({ 'content-type': type, authorization }: Headers): boolean {
  return isBasic(authorization) || FORM_TYPE.test(type ?? '');
}

function parseJsonOnce(bytes: Buffer): unknown {
  try {
    const text = decodeUtf8(bytes);
    const value: unknown = JSON.parse(text);
    return repeatsMember(text) ? undefined : value;
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof Utf8Error) return undefined;
    throw error;
  }
}

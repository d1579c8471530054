import { maskEmbedded, startsDocument } from './mask-json.ts';
import { credentialsAt, isSecretKey, MASK, maskTokens, TOKEN_START } from './mask-keys.ts';

/** Matches the path of the GraphQL endpoint, with or without scheme and host, repeated slashes or a trailing slash. */
const GRAPHQL_PATH = /^(?:[a-z][a-z\d+.-]*:)?(?:\/\/[^/]*)?\/+graphql\/*$/i;
/**
 * Matches the names of a GraphQL operation's parameters, those of arguments that are passwords, and others that begin
 * with one of these words.
 */
const OPERATION_PARAMETER = /^(?:query|variables|extensions|current|new)\b/i;

/**
 * Masks the values of secret keys in `application/x-www-form-urlencoded` text, however the keys are encoded
 * (`user[pass%77ord]`), and in JSON values (`variables={…}`), and, if `isOperation`, the parameters of a GraphQL
 * operation. All other pairs stay byte for byte. May stop after `maxLength` UTF-16 units.
 */
export function maskForm(text: string, maxLength = Number.POSITIVE_INFINITY, isOperation = false): string {
  const pairs: string[] = [];
  for (let start = 0, length = 0; start <= text.length && length < maxLength; ) {
    const ampersand = text.indexOf('&', start);
    const end = ampersand === -1 ? text.length : ampersand;
    const pair = maskPair(text.slice(start, end), isOperation);
    if (pair === undefined) break;
    pairs.push(pair);
    length += pair.length + 1;
    start = end + 1;
  }
  return pairs.join('&');
}

/**
 * Masks a URL's query, with or without its `?`, like a form. If `path` belongs to GraphQL, or is null (unknown), the
 * parameters of the GraphQL operation are masked too.
 */
export function maskQuery(query: string, path: string | null = ''): string {
  const marks = /^\?*/.exec(query)?.[0] ?? '';
  const pairs = query.slice(marks.length);
  return marks + (path === null || GRAPHQL_PATH.test(path) ? maskOperationQuery(pairs) : maskForm(pairs));
}

/**
 * Masks a query that holds a GraphQL operation. Replaces a part that does not begin with `name=` as a whole: it may
 * belong to a GraphQL document whose `&` was not escaped.
 */
function maskOperationQuery(query: string): string {
  const pairs = query.split('&').map((pair) => (/^[\w.[\]%-]*=|^$/.test(pair) ? pair : MASK));
  return maskForm(pairs.join('&'), undefined, true);
}

/**
 * Masks one pair of a form. Returns undefined when a JSON document stands in place of its name, because the `&` in it
 * do not separate pairs.
 */
function maskPair(pair: string, isOperation: boolean): string | undefined {
  const equals = pair.indexOf('=');
  const rawName = equals === -1 ? pair : pair.slice(0, equals);
  const name = decode(rawName);
  if (name.trimStart().startsWith('{')) return undefined;
  if (equals === -1) return pair;
  if (isSecretPath(name) || (isOperation && OPERATION_PARAMETER.test(name))) return `${rawName}=${MASK}`;
  const rawValue = pair.slice(equals + 1);
  // An escape that the end of a captured body cuts off would be an error in a nested document.
  const value = decode(rawValue.replace(CUT_ESCAPE, ''));
  if (!startsDocument(value)) return maskSemicolons(pair);
  const masked = maskEmbedded(value);
  return masked === value ? pair : `${rawName}=${encodeURIComponent(masked)}`;
}

/** Masks from the first secret name after a `;`, because some servers separate pairs by it: `a=1;password=x`. */
function maskSemicolons(pair: string): string {
  let semicolon = pair.indexOf(';');
  while (semicolon !== -1) {
    const next = pair.indexOf(';', semicolon + 1);
    const part = pair.slice(semicolon + 1, next === -1 ? pair.length : next);
    const equals = part.indexOf('=');
    const rawName = part.slice(0, Math.max(equals, 0));
    if (isSecretPath(decode(rawName))) return `${pair.slice(0, semicolon + 1)}${rawName}=${MASK}`;
    semicolon = next;
  }
  return pair;
}

/** Checks whether any segment of a name is secret: `user[password]`, `user.password`, `password[]`. */
function isSecretPath(name: string): boolean {
  return isSecretKey(name) || (/[[.]/.test(name) && name.split(/[[\].]/).some(isSecretKey));
}

/** Decodes `+` and percent escapes; leaves invalid escapes unchanged, where decodeURIComponent throws. */
export function decode(text: string): string {
  if (!/[%+]/.test(text)) return text;
  const spaced = text.replaceAll('+', ' ');
  return spaced.replace(/(?:%[0-9a-f]{2})+/gi, (run) => Buffer.from(run.replaceAll('%', ''), 'hex').toString('utf8'));
}

const CUT_MARK = '…';
const CUT_MARK_BYTES = Buffer.byteLength(CUT_MARK);

/** The number of times that a text is decoded. Text that still has escapes after that is masked. */
const MAX_SPELLINGS = 3;

/** Matches texts that may hold a secret; all others need no masking. */
const SUSPECT = /%|\\u|eyJ|secret|password|token|authorization|search|bearer|basic/i;
const ESCAPE = /%[0-9a-f]{2}|\\u[0-9a-f]{4}/i;
const UNICODE_ESCAPE = /(?<!\\)\\+u([0-9a-f]{4})/gi;
/** Matches an escape sequence that the end of the text cuts off, even if its percent sign is escaped itself. */
const CUT_ESCAPE = /(?:%(?:25)*[0-9a-f]?|(?<!\\)\\+(?:u[0-9a-f]{0,3})?)$/i;
const WORD_END = /[\s,;&?#"'<>]/;
const PIECE_START = /(?=[&?#\s])/;

/**
 * Masks a part of a request's head (path, query or header value) and limits it to `maxBytes` of UTF-8. Cuts it before
 * masking, so that long heads cost no more than the recorded part. Text that was cut ends in `…`.
 */
export function maskPart(text: string, maxBytes: number, mask: (text: string) => string): string {
  const kept = cutReadable(text, maxBytes);
  const shown = mask(kept);
  if (kept === text && isWithin(shown, maxBytes)) return shown;
  return cut(shown, maxBytes - CUT_MARK_BYTES) + CUT_MARK;
}

/** Masks credentials and JWTs, even if they are escaped several times; drops everything after the first credentials. */
export function maskSpelled(text: string): string {
  if (!SUSPECT.test(text)) return text;
  const plain = maskTokens(text);
  const at = credentialsAt(plain);
  const shown = at === -1 ? plain : plain.slice(0, at) + MASK;
  if (!hasEscapedSecret(shown)) return shown;
  const pieces = shown.split(PIECE_START);
  const secretAt = pieces.findIndex(hasEscapedSecret);
  return secretAt > 0 ? `${pieces.slice(0, secretAt).join('')}${pieces[secretAt]?.charAt(0)}${MASK}` : MASK;
}

/**
 * Cuts a text to `maxBytes` and removes from its end an incomplete escape sequence and a word that may be part of a
 * JWT.
 */
function cutReadable(text: string, maxBytes: number): string {
  if (isWithin(text, maxBytes)) return text;
  const whole = cut(text, maxBytes - CUT_MARK_BYTES).replace(CUT_ESCAPE, '');
  const word = whole.split(WORD_END).at(-1) ?? '';
  return spellingsOf(word).some((spelled) => spelled.includes(TOKEN_START)) ? whole.slice(0, -word.length) : whole;
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

function hasEscapedSecret(text: string): boolean {
  const [, ...decoded] = spellingsOf(text);
  const isDeeper = decoded.length === MAX_SPELLINGS && ESCAPE.test(decoded.at(-1) ?? '');
  return isDeeper || decoded.some((spelled) => credentialsAt(spelled) !== -1 || maskTokens(spelled) !== spelled);
}

/**
 * Returns a text, followed by the text after each round of decoding its percent and `\\u` escapes, of at most three.
 */
export function spellingsOf(text: string): string[] {
  const spellings = [text];
  for (let last = text; spellings.length <= MAX_SPELLINGS && ESCAPE.test(last); spellings.push(last)) {
    last = decode(last).replace(UNICODE_ESCAPE, (_escape, code: string) =>
      String.fromCharCode(Number.parseInt(code, 16)),
    );
  }
  return spellings;
}

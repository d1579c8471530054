import { maskEmbedded, startsDocument } from './mask-json.ts';
import { credentialsAt, isSecretKey, MASK, maskTokens, TOKEN_START } from './mask-keys.ts';

/** What a pair's value becomes, by its decoded name and value; undefined where the name alone decides. */
type ValueMask = (name: string, value: string) => string | undefined;

/** A request to `/graphql`, however it is spelled, without or with an origin. */
const GRAPHQL_PATH = /^(?:[a-z][a-z\d+.-]*:)?(?:\/\/[^/]*)?\/+graphql\/*$/i;
const OPERATION_PARAMETER = /^(?:query|variables|extensions)\b/i;

/**
 * Masks the values of secret keys in `application/x-www-form-urlencoded` text, however the keys are spelled
 * (`user[pass%77ord]`), and in JSON values (`variables={…}`). All other pairs stay byte for byte.
 */
export function maskForm(text: string, maxLength = Number.POSITIVE_INFINITY, valueMask?: ValueMask): string {
  const pairs: string[] = [];
  for (let start = 0, length = 0; start <= text.length && length < maxLength; ) {
    const ampersand = text.indexOf('&', start);
    const end = ampersand === -1 ? text.length : ampersand;
    const pair = maskPair(text.slice(start, end), valueMask);
    if (pair === undefined) break;
    pairs.push(pair);
    length += pair.length + 1;
    start = end + 1;
  }
  return pairs.join('&');
}

/**
 * Masks the query of an address, with or without a `?`, as a form is masked. Where the path is that of GraphQL, or null, which
 * is one that is not known, the operation is hidden.
 */
export function maskQuery(query: string, path: string | null = ''): string {
  const marks = /^\?*/.exec(query)?.[0] ?? '';
  const pairs = query.slice(marks.length);
  return (
    marks + (path === null || GRAPHQL_PATH.test(path) ? maskOperationQuery(pairs, hidesOperation) : maskForm(pairs))
  );
}

/**
 * Masks a query that holds a GraphQL operation. A pair that is not `name=value`, with a name, is hidden whole: it may be
 * a piece of a document.
 */
export function maskOperationQuery(query: string, valueMask: ValueMask): string {
  const pairs = query.split('&').map((pair) => (/^[\w.[\]%-]*=|^$/.test(pair) ? pair : MASK));
  return maskForm(pairs.join('&'), undefined, valueMask);
}

/** Hides every parameter of an operation, however its name goes on. */
export function hidesOperation(name: string): string | undefined {
  return OPERATION_PARAMETER.test(name) ? MASK : undefined;
}

/** Undefined for a document in the place of a key: its `&` are not this form's. */
function maskPair(pair: string, valueMask: ValueMask | undefined): string | undefined {
  const equals = pair.indexOf('=');
  const rawName = equals === -1 ? pair : pair.slice(0, equals);
  const name = decode(rawName);
  if (name.trimStart().startsWith('{')) return undefined;
  if (equals === -1) return pair;
  if (isSecretPath(name)) return `${rawName}=${MASK}`;
  const rawValue = pair.slice(equals + 1);
  const value = decode(rawValue);
  const own = valueMask?.(name, value);
  if (own !== undefined) return own === value ? pair : `${rawName}=${encodeURIComponent(own.toWellFormed())}`;
  if (!startsDocument(value)) return maskSemicolons(pair);
  const masked = maskEmbedded(value);
  return masked === value ? pair : `${rawName}=${encodeURIComponent(masked)}`;
}

/** Some servers split at `;` too: `a=1;password=x` must not pass as the value of `a`. */
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

/** `user[password]`, `user.password`, `password[]`: any segment makes the value secret. */
function isSecretPath(name: string): boolean {
  return isSecretKey(name) || (/[[.]/.test(name) && name.split(/[[\].]/).some(isSecretKey));
}

/** Percent-decoding that keeps a broken escape as it stands, where decodeURIComponent throws. */
export function decode(text: string): string {
  if (!/[%+]/.test(text)) return text;
  const spaced = text.replaceAll('+', ' ');
  return spaced.replace(/(?:%[0-9a-f]{2})+/gi, (run) => Buffer.from(run.replaceAll('%', ''), 'hex').toString('utf8'));
}

const CUT_MARK = '…';
const CUT_MARK_BYTES = Buffer.byteLength(CUT_MARK);

/** How often a text is decoded; what is spelled in more escapes than that is hidden. */
const MAX_SPELLINGS = 3;

/** Without any of these a text is shown as it is. */
const SUSPECT = /%|\\u|eyJ|secret|password|token|authorization|bearer|basic/i;
const ESCAPE = /%[0-9a-f]{2}|\\u[0-9a-f]{4}/i;
const UNICODE_ESCAPE = /(?<!\\)\\+u([0-9a-f]{4})/gi;
/** An escape that the end cuts, also where its percent sign is escaped itself. */
const CUT_ESCAPE = /(?:%(?:25)*[0-9a-f]?|(?<!\\)\\+(?:u[0-9a-f]{0,3})?)$/i;
const WORD_END = /[\s,;&?#"'<>]/;
const PIECE_START = /(?=[&?#\s])/;

/**
 * A part of a request's head as a record shows it (its path, its query, the value of a header), in at most `maxBytes` of
 * UTF-8. It is cut before it is masked, so that nobody's head costs more than what is kept. What was cut ends in `…`.
 */
export function maskPart(text: string, maxBytes: number, mask: (text: string) => string): string {
  const kept = cutReadable(text, maxBytes);
  const shown = mask(kept);
  if (kept === text && isWithin(shown, maxBytes)) return shown;
  return cut(shown, maxBytes - CUT_MARK_BYTES) + CUT_MARK;
}

/** Masks what looks like a secret, however it is spelled: from there on everything is dropped. */
export function maskSpelled(text: string): string {
  if (!SUSPECT.test(text)) return text;
  const plain = maskTokens(text);
  const at = credentialsAt(plain);
  const shown = at === -1 ? plain : plain.slice(0, at) + MASK;
  if (!tellsDecoded(shown)) return shown;
  const pieces = shown.split(PIECE_START);
  const told = pieces.findIndex(tellsDecoded);
  return told > 0 ? `${pieces.slice(0, told).join('')}${pieces[told]?.charAt(0)}${MASK}` : MASK;
}

/** Cuts what is too long. At its end no half escape is left, and no word that may be half a token. */
function cutReadable(text: string, maxBytes: number): string {
  if (isWithin(text, maxBytes)) return text;
  const whole = cut(text, maxBytes - CUT_MARK_BYTES).replace(CUT_ESCAPE, '');
  const word = whole.split(WORD_END).at(-1) ?? '';
  return spellingsOf(word).some((spelled) => spelled.includes(TOKEN_START)) ? whole.slice(0, -word.length) : whole;
}

function isWithin(text: string, maxBytes: number): boolean {
  return text.length * 3 <= maxBytes || (text.length <= maxBytes && Buffer.byteLength(text) <= maxBytes);
}

/** Returns the longest beginning of a text, in whole characters, that has at most `maxBytes` of UTF-8. */
export function cut(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes) return text;
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(maxBytes));
  return text.slice(0, read);
}

function tellsDecoded(text: string): boolean {
  const [, ...decoded] = spellingsOf(text);
  const isDeeper = decoded.length === MAX_SPELLINGS && ESCAPE.test(decoded.at(-1) ?? '');
  return isDeeper || decoded.some((spelled) => credentialsAt(spelled) !== -1 || maskTokens(spelled) !== spelled);
}

/** A text, and what it becomes each time that its escapes (percent signs, `\\u`) are decoded. */
export function spellingsOf(text: string): string[] {
  const spellings = [text];
  for (let last = text; spellings.length <= MAX_SPELLINGS && ESCAPE.test(last); spellings.push(last)) {
    last = decode(last).replace(UNICODE_ESCAPE, (_escape, code: string) =>
      String.fromCharCode(Number.parseInt(code, 16)),
    );
  }
  return spellings;
}

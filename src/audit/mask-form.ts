import { maskEmbedded, startsDocument } from './mask-json.ts';
import { SECRETS, type SecretNames } from './mask-keys.ts';
import { MASK, maskValues, TOKEN_START } from './mask-values.ts';
import { JWK_MEMBERS } from './secret-names.ts';

/** Matches a path or URL that ends in the name of a GraphQL endpoint. */
const GRAPHQL_PATH = /(?:^|\/)graphql(?:;[^/]*)?\/*$/i;
/**
 * Matches the names of a GraphQL operation's parameters, those of arguments that are passwords, and others that begin
 * with one of these words.
 */
const OPERATION_PARAMETER = /^(?:query|variables|extensions|current|new)\b/i;

/** Matches what a form may hide names or values in. */
const FORM_SYNTAX = /[%{[\\".;]/;
/** Matches the name `kty`, and an escape that may spell it. */
const KEY_TYPE = /kty|%(?:6b|74|79)/i;
/** Matches what separates the parts of a name: `user[password]`, `user.password`, and `amp;password` of an escaped `&`. */
const NAME_SEPARATOR = /[[\].;]/;

interface FormOptions {
  secrets?: SecretNames | undefined;
  /** Masking may stop after this many UTF-16 units. */
  maxLength?: number;
  /** Whether the parameters of a GraphQL operation are masked too. */
  isOperation?: boolean;
}

/**
 * Masks the values of secret keys in `application/x-www-form-urlencoded` text, however the keys are encoded
 * (`user[pass%77ord]`), and in values that are JSON or pairs again (`variables={…}`). All other pairs stay byte for byte.
 */
export function maskForm(text: string, options: FormOptions = {}): string {
  const { secrets = SECRETS, maxLength = Number.POSITIVE_INFINITY, isOperation = false } = options;
  if (!isOperation && !FORM_SYNTAX.test(text) && !secrets.mayNameSecret(text.replaceAll('+', ' '))) return text;
  const isKey = KEY_TYPE.test(text);
  const isSecret = (name: string) =>
    isSecretPath(name, secrets) || (isKey && hasKeyMember(name)) || (isOperation && OPERATION_PARAMETER.test(name));
  const pairs: string[] = [];
  for (let start = 0, length = 0; start <= text.length && length < maxLength; ) {
    const ampersand = text.indexOf('&', start);
    const end = ampersand === -1 ? text.length : ampersand;
    const pair = maskPair(text.slice(start, end), isSecret, secrets);
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
export function maskQuery(query: string, path: string | null = '', secrets: SecretNames = SECRETS): string {
  const marks = /^\?*/.exec(query)?.[0] ?? '';
  const pairs = query.slice(marks.length);
  return marks + (path === null || isGraphql(path) ? maskOperationQuery(pairs, secrets) : maskForm(pairs, { secrets }));
}

/** Checks whether a path or URL, in any spelling, ends in the name of a GraphQL endpoint. */
export function isGraphql(path: string): boolean {
  return spellingsOf(path).some((spelled) => GRAPHQL_PATH.test(spelled));
}

/**
 * Masks a query that holds a GraphQL operation. Replaces a part that does not begin with `name=` as a whole: it may
 * belong to a GraphQL document whose `&` was not escaped.
 */
function maskOperationQuery(query: string, secrets: SecretNames): string {
  const pairs = query.split('&').map((pair) => (/^[\w.[\]%-]*=|^$/.test(pair) ? pair : MASK));
  return maskForm(pairs.join('&'), { secrets, isOperation: true });
}

/**
 * Masks one pair of a form. Returns undefined when a JSON document stands in place of its name, because the `&` in it
 * do not separate pairs.
 */
function maskPair(pair: string, isSecret: (name: string) => boolean, secrets: SecretNames): string | undefined {
  const equals = pair.indexOf('=');
  const rawName = equals === -1 ? pair : pair.slice(0, equals);
  const name = decode(rawName);
  if (name.trimStart().startsWith('{')) return undefined;
  if (equals !== -1 && equals < pair.length - 1 && isSecret(name)) return `${rawName}=${MASK}`;
  const rawValue = pair.slice(equals + 1);
  // An escape that the end of a captured body cuts off would be an error in a nested document.
  const value = decode(rawValue.replace(CUT_ESCAPE, ''));
  if (equals === -1 || !startsDocument(value)) {
    const shown = maskSemicolons(pair, isSecret);
    if (shown !== pair) return shown;
    const at = secrets.secretValueAt(rawValue);
    if (at !== -1) return pair.slice(0, equals + 1 + at) + MASK;
    return hasEscapedSecret(rawValue, secrets) ? pair.slice(0, equals + 1) + MASK : pair;
  }
  const masked = maskValues(maskEmbedded(value, secrets));
  return masked === value ? pair : `${rawName}=${encodeURIComponent(masked)}`;
}

/** Masks from the first secret name after a `;`, because some servers separate pairs by it: `a=1;password=x`. */
function maskSemicolons(pair: string, isSecret: (name: string) => boolean): string {
  let semicolon = pair.indexOf(';');
  while (semicolon !== -1) {
    const next = pair.indexOf(';', semicolon + 1);
    const part = pair.slice(semicolon + 1, next === -1 ? pair.length : next);
    const equals = part.indexOf('=');
    const rawName = part.slice(0, Math.max(equals, 0));
    if (isSecret(decode(rawName))) return `${pair.slice(0, semicolon + 1)}${rawName}=${MASK}`;
    semicolon = next;
  }
  return pair;
}

/** Checks whether any segment of a name is secret. */
function isSecretPath(name: string, secrets: SecretNames): boolean {
  if (secrets.isSecretKey(name)) return true;
  return NAME_SEPARATOR.test(name) && name.split(NAME_SEPARATOR).some((segment) => secrets.isSecretKey(segment));
}

/** Checks whether the last segment of a name is that of a private member of a JWK. */
function hasKeyMember(name: string): boolean {
  return Object.hasOwn(JWK_MEMBERS, name.split(NAME_SEPARATOR).findLast((segment) => segment !== '') ?? '');
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

/** Matches texts that may hold a secret without its name. */
const SUSPECT = /[%@]|\\u|bearer|basic/i;
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

/** Masks credentials and other secrets, even if they are escaped several times; drops everything after the first one. */
export function maskSpelled(text: string, secrets: SecretNames = SECRETS): string {
  const plain = maskValues(text);
  if (plain === text && !SUSPECT.test(text) && !secrets.mayNameSecret(text)) return text;
  const at = secrets.credentialsAt(plain);
  const shown = at === -1 ? plain : plain.slice(0, at) + MASK;
  if (!hasEscapedSecret(shown, secrets)) return shown;
  const pieces = shown.split(PIECE_START);
  const secretAt = pieces.findIndex((piece) => hasEscapedSecret(piece, secrets));
  return secretAt > 0 ? `${pieces.slice(0, secretAt).join('')}${pieces[secretAt]?.charAt(0)}${MASK}` : MASK;
}

/** Matches the end of a text that may be part of a URL's user and password. */
const OPEN_USERINFO = /(?:^|[:=\s"'<(,])[/\\]{2}[^/?#\s]*$/;

/**
 * Cuts a text to `maxBytes` and removes from its end an incomplete escape sequence, a word that may be part of a JWT, and
 * what may be part of a URL's user and password.
 */
function cutReadable(text: string, maxBytes: number): string {
  if (isWithin(text, maxBytes)) return text;
  const whole = cut(text, maxBytes - CUT_MARK_BYTES)
    .replace(CUT_ESCAPE, '')
    .replace(OPEN_USERINFO, '');
  const word = whole.split(WORD_END).at(-1) ?? '';
  const isSecret = (spelled: string) => TOKEN_START.test(spelled) || OPEN_USERINFO.test(spelled);
  return spellingsOf(word).some(isSecret) ? whole.slice(0, -word.length) : whole;
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

function hasEscapedSecret(text: string, secrets: SecretNames): boolean {
  const [, ...decoded] = spellingsOf(text);
  const isDeeper = decoded.length === MAX_SPELLINGS && ESCAPE.test(decoded.at(-1) ?? '');
  return (
    isDeeper || decoded.some((spelled) => secrets.credentialsAt(spelled) !== -1 || maskValues(spelled) !== spelled)
  );
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

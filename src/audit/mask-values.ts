/** The text that replaces a secret, and what was searched for, in every log line and audit record. */
export const MASK = '***';

/** Matches the beginning of a JWT: `{`, white space, and `"` or `}` in base64url. */
export const TOKEN_START = /eyJ|(?<![\w-])e(?:y[ABI]|w[0ko]|30)/;

/** Every text with a secret that is masked under any name contains one of these. */
const VALUE_PARTS = ['PRIVATE', 'prv', 'whsec_', 'AGE-SECRET-KEY-', 'PuTTY', '@'];

/**
 * Matches a private key in PEM or a format like it, to its last line, also in JSON strings and with one string per line.
 * Without an end line, it matches as long as the lines have the form of a key.
 */
const PRIVATE_KEY =
  /-{4,5}[ +]?BEGIN[^-\r\n"\\]{0,60}PRIVATE[ +_]KEY(?:[ +]BLOCK)? ?-{0,5}(?:(?:[^-]|-(?!-{3}))*-{4,5}[ +]?END[^-"]{0,60}-{0,5}|(?:[^-"\\]|-(?!-{3})|\\+(?!["\\])|"\s*,\s*"(?=[\w+/=]+(?:"\s*(?:[,\]]|$)|$)))*)/g;
/**
 * Matches an extended private key (BIP 32, SLIP 132), a secret of Standard Webhooks, an identity of age, and a key file of
 * PuTTY, to the end of its text.
 */
const KEY =
  /[xyztuvYZUV]prv(?:[1-9A-HJ-NP-Za-km-z]{90,}|[1-9A-HJ-NP-Za-km-z]+$)|whsec_[\w+/=-]{16,}|AGE-SECRET-KEY-[A-Z0-9]+|PuTTY-User-Key-File-(?:[^"\\]|\\+(?!["\\]))*/g;
/** Matches what stands before a URL's authority (RFC 3986 section 3.2); JSON may escape the slashes. */
const AUTHORITY = authorityAfter(String.raw`[:=\s"'<(,[]`);
const IN_AUTHORITY = String.raw`[^\s/?#"<>\\]*`;
/** Matches a user, and the colon before a password that may have what should have been escaped; before no port. */
const USER = String.raw`[^\s/?#"<>\\:@[]*:(?!\d{1,5}(?:[/?#"'<>\\\s,)]|$))`;
const OPEN_USERINFO = new RegExp(String.raw`${AUTHORITY}(?:${IN_AUTHORITY}|${USER}\S{0,256})$`, 'i');
const ANY_USERINFO = new RegExp(`${AUTHORITY}(?:${USER}|${IN_AUTHORITY}@)`, 'i');
const USERINFO = userinfoBefore('', '', AUTHORITY);
/**
 * Matches the same in JSON. A URL whose string continues after an escaped quotation mark is left to the masking of that
 * string; what precedes a URL is searched for one only where a URL may begin.
 */
const USERINFO_IN_JSON = userinfoBefore(
  '"',
  String.raw`(?![^\s"]{0,256}\\")`,
  String.raw`(?=^|[:=\s'<(,["]\\*\/)(?<!\\"[^\s"]{0,256})${authorityAfter(String.raw`[:=\s'<(,[]|(?<!\\)"`)}`,
);

function authorityAfter(before: string): string {
  return String.raw`((?:^<?[a-z][a-z\d+.-]*:\\{2}|(?:^|${before})(?:\\*\/){2}))`;
}

/** Returns a pattern of user and password of a URL that ends before the character `end`. A later `@` may belong to its path. */
function userinfoBefore(end: string, after: string, authority: string): RegExp {
  const more = String.raw`(?:[^\s=&,${end}]{0,256}[^\s=&,/${end}]@)?`;
  const password = String.raw`(?:${IN_AUTHORITY}@(?=[^\s/?#"<>\\])|[^\s${end}]{0,256}?@)`;
  // A reference to what a look-ahead has found is not searched again where `after` does not follow.
  return new RegExp(
    `${authority}(?=(?<userinfo>${USER}${password}${more}|${IN_AUTHORITY}@))\\k<userinfo>${after}`,
    'gi',
  );
}

/**
 * Returns a text, JSON or other, with every value that can be nothing else than a secret replaced by `***`: JWTs, private
 * keys in PEM and extended private keys. Removes user and password from every URL.
 */
export function maskValues(text: string, isJson = false): string {
  return replaceValues(text, isJson ? USERINFO_IN_JSON : USERINFO, MASK, '$1');
}

/** Stands for what is masked; no text that was decoded contains it. */
const SPOT = '\ud800\0';

/** Returns the index of the first value that `maskValues` masks or removes; -1 without one. */
export function valueAt(text: string): number {
  return replaceValues(text, USERINFO, SPOT, `$1${SPOT}`).indexOf(SPOT);
}

function replaceValues(text: string, userinfo: RegExp, mask: string, user: string): string {
  const hasToken = TOKEN_START.test(text);
  if (!hasToken && !VALUE_PARTS.some((part) => text.includes(part))) return text;
  const masked = text.replace(PRIVATE_KEY, mask).replace(KEY, mask).replace(userinfo, user);
  return hasToken ? masked.replace(/[\w.-]+/g, (run) => maskToken(run, mask)) : masked;
}

/** Masks a run of token characters from the beginning of a JWT on; returns it unchanged when it contains none. */
function maskToken(run: string, mask: string): string {
  const start = run.search(TOKEN_START);
  const second = run.indexOf('.', start);
  return start !== -1 && second !== -1 && run.includes('.', second + 1) ? run.slice(0, start) + mask : run;
}

/** Returns a text that was cut off without what may be the user and password of a URL at its end. */
export function withoutOpenUserinfo(text: string): string {
  return text.replace(OPEN_USERINFO, '$1');
}

/** Checks whether a URL in JSON may have a password with an escaped quotation mark, of which only its own string knows the end. */
export function mayHavePassword(json: string): boolean {
  return /@|\\u0040/.test(json) && ANY_USERINFO.test(json);
}

/** Matches user and password of an authority that stands alone: the target of CONNECT, or the value of `Host`. */
const BARE_USERINFO = /^(?!<?[a-z][a-z\d+.-]*:[/\\]{2}|[/\\*])[^\s?]+@/i;

/** Returns a target or an authority without its user and password. */
export function withoutBareUserinfo(text: string): string {
  return text.includes('@') ? text.replace(USERINFO, '$1').replace(BARE_USERINFO, '') : text;
}

/** The number of times that a text is decoded. One that still has escapes after that is masked. */
const MAX_ROUNDS = 3;
const ESCAPE = /%[0-9a-f]{2}|\\u[0-9a-f]{4}/i;
const UNICODE_ESCAPE = /(?<!\\)\\+u([0-9a-f]{4})/gi;

/** Decodes `+` and percent escapes; leaves invalid escapes unchanged, where decodeURIComponent throws. */
export function decode(text: string): string {
  if (!/[%+]/.test(text)) return text;
  return text
    .replaceAll('+', ' ')
    .replace(/(?:%[0-9a-f]{2})+/gi, (run) => Buffer.from(run.replaceAll('%', ''), 'hex').toString('utf8'));
}

/** Returns a text, followed by the text after each round of decoding its percent and `\\u` escapes, of at most three. */
export function spellingsOf(text: string): string[] {
  const spellings = [text];
  for (let last = text; spellings.length <= MAX_ROUNDS && ESCAPE.test(last); spellings.push(last)) {
    last = decode(last).replace(UNICODE_ESCAPE, (_escape, code: string) =>
      String.fromCharCode(Number.parseInt(code, 16)),
    );
  }
  return spellings;
}

/** Returns where the escapes of a text begin that are deeper than `spellingsOf` decodes; -1 without any. */
export function deepEscapeAt(text: string, spellings: readonly string[]): number {
  return ESCAPE.test(spellings[MAX_ROUNDS] ?? '') ? text.search(ESCAPE) : -1;
}

/** The text that replaces a secret, and what was searched for, in every log line and audit record. */
export const MASK = '***';

/** Matches the beginning of a JWT: `{`, white space, and `"` or `}` in base64url. */
export const TOKEN_START = /eyJ|(?<![\w-])e(?:y[ABI]|w[0ko]|30)/;

/** What every text with a secret that is masked whatever its name contains. */
const VALUE_PARTS = ['PRIVATE', 'prv', 'whsec_', 'AGE-SECRET-KEY-', 'PuTTY', '@'];

/**
 * Matches a private key in PEM or a format like it, to its last line, also in JSON strings and with one string per line.
 * One whose end is missing goes on for as long as there are lines of it.
 */
const PRIVATE_KEY =
  /-{4,5}[ +]?BEGIN[^-\r\n"\\]{0,60}PRIVATE[ +_]KEY(?:[ +]BLOCK)? ?-{0,5}(?:(?:[^-]|-(?!-{3}))*-{4,5}[ +]?END[^-"]{0,60}-{0,5}|(?:[^-"\\]|-(?!-{3})|\\+(?!["\\])|"\s*,\s*"(?=[\w+/=]+(?:"\s*(?:[,\]]|$)|$)))*)/g;
/**
 * Matches an extended private key (BIP 32, SLIP 132), a secret of Standard Webhooks, an identity of age, and a key file of
 * PuTTY, to the end of its text.
 */
const KEY =
  /[xyztuvYZUV]prv(?:[1-9A-HJ-NP-Za-km-z]{90,}|[1-9A-HJ-NP-Za-km-z]*$)|whsec_[\w+/=-]{16,}|AGE-SECRET-KEY-[A-Z0-9]+|PuTTY-User-Key-File-(?:[^"\\]|\\+(?!["\\]))*/g;
/** Matches the slashes before a URL's authority (RFC 3986 section 3.2), which JSON may escape, and what may follow. */
const AUTHORITY = String.raw`((?:^|[:=\s"'<(,])(?:\\*\/){2})[^\s/?#"<>\\]*`;
const USERINFO = new RegExp(`${AUTHORITY}@`, 'g');
const OPEN_USERINFO = new RegExp(`${AUTHORITY}$`);

/**
 * Returns a text with every value that can be nothing else than a secret replaced by `***`: JWTs, private keys in PEM
 * and extended private keys. Removes user and password from every URL.
 */
export function maskValues(text: string): string {
  const hasToken = TOKEN_START.test(text);
  if (!hasToken && !VALUE_PARTS.some((part) => text.includes(part))) return text;
  const masked = text.replace(PRIVATE_KEY, MASK).replace(KEY, MASK).replace(USERINFO, '$1');
  return hasToken ? masked.replace(/[\w.-]+/g, maskToken) : masked;
}

/** Masks a run of token characters from the beginning of a JWT on; returns it unchanged when it contains none. */
function maskToken(run: string): string {
  const start = run.search(TOKEN_START);
  if (start === -1) return run;
  const second = run.indexOf('.', start);
  return second !== -1 && run.includes('.', second + 1) ? run.slice(0, start) + MASK : run;
}

/** Returns a text that was cut off without what may be the user and password of a URL at its end. */
export function withoutOpenUserinfo(text: string): string {
  return text.replace(OPEN_USERINFO, '$1');
}

/** Matches the scheme, if it has one, and user and password of a URL, even if they have characters that should have been escaped. */
const WHOLE_USERINFO = /^(<?(?:[a-z][a-z\d+.-]*:)?[/\\]{2})(?:[^/\s]*@|[^/:@\s]*:(?!\d*(?:\/|$))[^@\s]*@)/i;

/** Matches user and password of an authority that stands alone: the target of CONNECT, or the value of `Host`. */
const BARE_USERINFO = /^(?!<?[a-z][a-z\d+.-]*:[/\\]{2}|[/\\*])[^\s?]+@/i;

/** Returns a target or an authority without its user and password. */
export function withoutBareUserinfo(text: string): string {
  return withoutUserinfo(text).replace(BARE_USERINFO, '');
}

/** Returns a text without the user and password of the URL that it begins with. */
export function withoutUserinfo(text: string): string {
  return text.replace(WHOLE_USERINFO, '$1');
}

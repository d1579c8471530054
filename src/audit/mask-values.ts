/** The text that replaces a secret, and what was searched for, in every log line and audit record. */
export const MASK = '***';

/** The beginning of every JWT: `{"` in base64url. */
export const TOKEN_START = 'eyJ';

/** What every text with a secret that is masked whatever its name contains. */
const VALUE_PARTS = [TOKEN_START, 'PRIVATE', 'prv', 'whsec_', 'AGE-SECRET-KEY-', 'PuTTY', '@'];

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
  if (!VALUE_PARTS.some((part) => text.includes(part))) return text;
  const masked = text.replace(PRIVATE_KEY, MASK).replace(KEY, MASK).replace(USERINFO, '$1');
  return masked.includes(TOKEN_START) ? masked.replace(/[\w.-]+/g, maskToken) : masked;
}

/** Masks a run of token characters from the beginning of a JWT on; returns it unchanged when it contains none. */
function maskToken(run: string): string {
  const start = run.indexOf(TOKEN_START);
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

/** Returns a text without the user and password of the URL that it begins with. */
export function withoutUserinfo(text: string): string {
  return text.replace(WHOLE_USERINFO, '$1');
}

import { maskEmbedded, startsDocument } from './mask-json.ts';
import { isSecretKey, MASK } from './mask-keys.ts';

/**
 * Masks the values of secret keys in `application/x-www-form-urlencoded` text, however the keys are spelled
 * (`user[pass%77ord]`), and in JSON values (`variables={…}`). All other pairs stay byte for byte.
 */
export function maskForm(text: string, maxLength = Number.POSITIVE_INFINITY): string {
  const pairs: string[] = [];
  for (let start = 0, length = 0; start <= text.length && length < maxLength; ) {
    const ampersand = text.indexOf('&', start);
    const end = ampersand === -1 ? text.length : ampersand;
    const pair = maskPair(text.slice(start, end));
    if (pair === undefined) break;
    pairs.push(pair);
    length += pair.length + 1;
    start = end + 1;
  }
  return pairs.join('&');
}

/** Masks a query string, with or without its `?`, as a form is masked. */
export function maskQuery(query: string): string {
  return query.startsWith('?') ? `?${maskForm(query.slice(1))}` : maskForm(query);
}

/** Undefined for a document in the place of a key: its `&` are not this form's. */
function maskPair(pair: string): string | undefined {
  const equals = pair.indexOf('=');
  const rawName = equals === -1 ? pair : pair.slice(0, equals);
  const name = decode(rawName);
  if (name.trimStart().startsWith('{')) return undefined;
  if (equals === -1) return pair;
  if (isSecretPath(name)) return `${rawName}=${MASK}`;
  const rawValue = pair.slice(equals + 1);
  const value = decode(rawValue);
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
function decode(text: string): string {
  if (!/[%+]/.test(text)) return text;
  const spaced = text.replaceAll('+', ' ');
  return spaced.replace(/(?:%[0-9a-f]{2})+/gi, (run) => Buffer.from(run.replaceAll('%', ''), 'hex').toString('utf8'));
}

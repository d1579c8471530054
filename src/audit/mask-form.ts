import { maskEmbedded, startsDocument } from './mask-json.ts';
import { isSecretKey, MASK } from './mask-keys.ts';

/** What a pair's value becomes, by its decoded name and value; undefined where the name alone decides. */
export type ValueMask = (name: string, value: string) => string | undefined;

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

/** Masks the query of an address, with or without a `?`, as a form is masked; of one to `/graphql` the operation is hidden. */
export function maskQuery(query: string, path = ''): string {
  const marks = /^\?*/.exec(query)?.[0] ?? '';
  const pairs = query.slice(marks.length);
  return marks + (GRAPHQL_PATH.test(path) ? maskOperationQuery(pairs, hidesOperation) : maskForm(pairs));
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

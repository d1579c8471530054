import { maskQuery } from './mask-form.ts';
import { isSecretKey, MASK, maskTokens } from './mask-keys.ts';

export type HeaderMap = Record<string, string | string[] | undefined>;

const SECRET_HEADERS = new Set(['authorization', 'proxy-authorization', 'cookie', 'set-cookie']);
/** What may hold an address with a query, or a JWT. */
const SUSPECT = /[?#]|eyJ/;

/** The most of a header's value that a record keeps: requests may have 160 KiB of headers. */
const MAX_VALUE_BYTES = 4 * 1024;
const CUT_MARK = '…';

/**
 * The headers as a record shows them (specification section 3): Authorization, cookies and every header with a
 * secret's name are `***`, and so are secrets in the query of an address and JWTs, in whatever header. Absent ones are
 * left out. A value over 4 KiB is cut there and ends in `…`.
 */
export function maskHeaders(headers: HeaderMap): Record<string, string | string[]> {
  const masked: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined) continue;
    const shown = maskHeader(name.toLowerCase(), value);
    masked[name] = Array.isArray(shown) ? shown.map(cutValue) : cutValue(shown);
  }
  return masked;
}

function maskHeader(name: string, value: string | string[]): string | string[] {
  if (SECRET_HEADERS.has(name) || isSecretKey(name)) return MASK;
  return Array.isArray(value) ? value.map(maskValue) : maskValue(value);
}

function maskValue(value: string): string {
  if (!SUSPECT.test(value)) return value;
  return maskTokens(value.includes('=') || value.includes('/') ? maskAddresses(maskAddress(value)) : value);
}

/** Takes the whole value for one address: what stands behind a mark is its query or its fragment, to the end. */
function maskAddress(value: string): string {
  const path = lastWord(value.split(/[?#]/, 1)[0] ?? '');
  return value.replace(/[?#][^#]*/g, (part) => part.charAt(0) + maskQuery(part.slice(1), path));
}

/** Takes the value for a list of addresses, such as `Link` has: each mark begins another query. */
function maskAddresses(value: string): string {
  const [first = '', ...parts] = value.split(/(?=[?#])/);
  let before = first;
  const masked = parts.map((part) => {
    const path = lastWord(before);
    before = part;
    return part.charAt(0) + maskQuery(part.slice(1), path);
  });
  return first + masked.join('');
}

/** The address that a text ends in. */
function lastWord(text: string): string {
  return text.split(/[\s<>"',;=]/).at(-1) ?? '';
}

function cutValue(value: string): string {
  if (value.length * 3 <= MAX_VALUE_BYTES || Buffer.byteLength(value) <= MAX_VALUE_BYTES) return value;
  const room = new Uint8Array(MAX_VALUE_BYTES - Buffer.byteLength(CUT_MARK));
  const { read } = new TextEncoder().encodeInto(value, room);
  return value.slice(0, read) + CUT_MARK;
}

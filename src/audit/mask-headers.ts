import { maskQuery } from './mask-form.ts';
import { isSecretKey, MASK } from './mask-keys.ts';

export type HeaderMap = Record<string, string | string[] | undefined>;

const SECRET_HEADERS = new Set(['authorization', 'proxy-authorization', 'cookie', 'set-cookie']);
const URL_HEADERS = new Set(['referer', 'location', 'content-location', 'x-original-url', 'x-forwarded-uri']);

/** The most of a header's value that a record keeps: requests may have 160 KiB of headers. */
const MAX_VALUE_BYTES = 4 * 1024;
const CUT_MARK = '…';

/**
 * The headers as a record shows them (specification section 3): Authorization, cookies and every header with a
 * secret's name are `***`, and so are secrets in the query of an address. Absent ones are left out. A value over 4 KiB is
 * cut there and ends in `…`.
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
  if (!URL_HEADERS.has(name)) return value;
  return Array.isArray(value) ? value.map(maskUrl) : maskUrl(value);
}

function maskUrl(url: string): string {
  const path = url.split(/[?#]/, 1)[0] ?? '';
  return url.replace(/[?#][^#]*/g, (part) => part.charAt(0) + maskQuery(part.slice(1), path));
}

function cutValue(value: string): string {
  if (value.length * 3 <= MAX_VALUE_BYTES || Buffer.byteLength(value) <= MAX_VALUE_BYTES) return value;
  const room = new Uint8Array(MAX_VALUE_BYTES - Buffer.byteLength(CUT_MARK));
  const { read } = new TextEncoder().encodeInto(value, room);
  return value.slice(0, read) + CUT_MARK;
}

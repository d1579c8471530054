import { maskQuery } from './mask-form.ts';
import { isSecretKey, MASK } from './mask-keys.ts';

export type HeaderMap = Record<string, string | string[] | undefined>;

const SECRET_HEADERS = new Set(['authorization', 'proxy-authorization', 'cookie', 'set-cookie']);
const URL_HEADERS = new Set(['referer', 'location', 'content-location', 'x-original-url', 'x-forwarded-uri']);

/**
 * The headers as a record shows them (specification section 3): Authorization, cookies and every header with a
 * secret's name are `***`, and so are secrets in the query of an address. Absent ones are left out.
 */
export function maskHeaders(headers: HeaderMap): Record<string, string | string[]> {
  const masked: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) masked[name] = maskHeader(name.toLowerCase(), value);
  }
  return masked;
}

function maskHeader(name: string, value: string | string[]): string | string[] {
  if (SECRET_HEADERS.has(name) || isSecretKey(name)) return MASK;
  if (!URL_HEADERS.has(name)) return value;
  return Array.isArray(value) ? value.map(maskUrl) : maskUrl(value);
}

function maskUrl(url: string): string {
  return url.replace(/[?#][^#]*/g, (part) => part.charAt(0) + maskQuery(part.slice(1)));
}

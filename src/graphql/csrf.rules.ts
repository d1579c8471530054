import type { IncomingHttpHeaders } from 'node:http';

/** The one content type of operations. */
export const JSON_TYPE: RegExp = /^application\/json\s*(?:;|$)/i;

/**
 * Whether a request can be no forgery by another site's page, which can send neither a JSON content type nor an
 * Authorization header without asking first (Fetch standard, CORS-safelisted request headers).
 */
export function passesCsrfCheck(headers: IncomingHttpHeaders): boolean {
  return headers.authorization !== undefined || JSON_TYPE.test(headers['content-type'] ?? '');
}

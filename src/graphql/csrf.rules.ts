import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

/** The content type of operations, which a file alone comes without. */
export const JSON_TYPE: RegExp = /^application\/json\s*(?:;|$)/i;

const FORM_TYPE = /^multipart\/form-data\s*(?:;|$)/i;

/** Whether a request brings a form, as uploads do. */
export function bringsForm({ method, headers }: Pick<IncomingMessage, 'method' | 'headers'>): boolean {
  return method === 'POST' && FORM_TYPE.test(headers['content-type'] ?? '');
}

/**
 * Whether a request can be no forgery by another site's page, which can send neither a JSON content type nor an
 * Authorization header without asking first (Fetch standard, CORS-safelisted request headers).
 */
export function passesCsrfCheck(headers: IncomingHttpHeaders): boolean {
  return headers.authorization !== undefined || JSON_TYPE.test(headers['content-type'] ?? '');
}

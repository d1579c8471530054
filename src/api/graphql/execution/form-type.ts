import type { IncomingMessage } from 'node:http';

const FORM_TYPE = /^multipart\/form-data\s*(?:;|$)/i;

/** Checks whether a request carries a multipart form, as uploads do. */
export function bringsForm({ method, headers }: Pick<IncomingMessage, 'method' | 'headers'>): boolean {
  return method === 'POST' && FORM_TYPE.test(headers['content-type'] ?? '');
}

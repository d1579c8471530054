import { createHash } from 'node:crypto';

/** Who called what under which key: what a key is good for. */
export interface KeyScope {
  subject: string;
  /** None for a token without a client. */
  clientId: string | undefined;
  method: string;
  path: string;
  key: string;
}

/** What a key looks like: 1 to 255 printable ASCII characters. */
export const IDEMPOTENCY_KEY = /^[\x20-\x7e]{1,255}$/;

/** Whether a header's text is a key. */
export function isIdempotencyKey(text: string): boolean {
  return IDEMPOTENCY_KEY.test(text);
}

/** SHA-256 of a scope: no two scopes have one in common. */
export function scopeHash({ subject, clientId, method, path, key }: KeyScope): Buffer {
  const parts = JSON.stringify([subject, clientId ?? null, method, path, key]);
  return createHash('sha256').update(parts, 'utf8').digest();
}

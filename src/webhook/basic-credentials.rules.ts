import { createHash, timingSafeEqual } from 'node:crypto';

/** The pair that a caller must show; during a rotation the previous password is as good. */
export interface BasicCredentials {
  username: string;
  passwords: readonly string[];
}

/** Whether an `Authorization` header carries the credentials (RFC 7617), compared in constant time. */
export function hasBasicCredentials(header: string | undefined, expected: BasicCredentials): boolean {
  const encoded = /^Basic +([A-Za-z0-9+/_-]+={0,2}) *$/i.exec(header ?? '')?.[1];
  if (encoded === undefined) return false;
  const decoded = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = decoded.indexOf(':');
  const username = colon < 0 ? decoded : decoded.slice(0, colon);
  const password = colon < 0 ? '' : decoded.slice(colon + 1);
  let matches = false;
  for (const candidate of expected.passwords) {
    const both = Number(isEqual(username, expected.username)) & Number(isEqual(password, candidate));
    matches = both === 1 || matches;
  }
  return matches && colon >= 0;
}

function isEqual(given: string, expected: string): boolean {
  return timingSafeEqual(digest(given), digest(expected));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text, 'utf8').digest();
}

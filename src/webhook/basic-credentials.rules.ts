import { hash, timingSafeEqual } from 'node:crypto';

/** The pair that a caller must show; during a rotation the previous password is as good. */
export interface BasicCredentials {
  username: string;
  passwords: readonly string[];
}

/** Tells whether an `Authorization` header carries the credentials (RFC 7617), compared in constant time. */
export function basicCredentials({ username, passwords }: BasicCredentials): (header: string | undefined) => boolean {
  // What follows the first colon is the password: no caller has a username with one in it.
  const pairs = username.includes(':') ? [] : passwords.map((password) => digest(`${username}:${password}`));
  return (header) => {
    const encoded = /^Basic +([A-Za-z0-9+/_-]+={0,2}) *$/i.exec(header ?? '')?.[1];
    if (encoded === undefined) return false;
    const given = digest(Buffer.from(encoded, 'base64').toString('utf8'));
    return pairs.reduce((found, pair) => timingSafeEqual(given, pair) || found, false);
  };
}

function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}

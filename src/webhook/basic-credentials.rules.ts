import { timingSafeEqual } from 'node:crypto';

/** The pair that a caller must show; during a rotation the previous password is as good. */
export interface BasicCredentials {
  username: string;
  passwords: readonly string[];
}

const LENGTH_BYTES = 4;

/** Tells whether an `Authorization` header carries the credentials (RFC 7617), compared in constant time. */
export function basicCredentials({ username, passwords }: BasicCredentials): (header: string | undefined) => boolean {
  // What follows the first colon is the password: no caller has a username with one in it.
  const pairs = username.includes(':') ? [] : passwords.map((password) => Buffer.from(`${username}:${password}`));
  const size = LENGTH_BYTES + Math.max(0, ...pairs.map(({ length }) => length));
  const expected = pairs.map((pair) => padded(pair, size));
  return (header) => {
    const encoded = /^Basic +([A-Za-z0-9+/_-]+={0,2}) *$/i.exec(header ?? '')?.[1];
    if (encoded === undefined) return false;
    const given = padded(Buffer.from(encoded, 'base64'), size);
    return expected.reduce((found, pair) => timingSafeEqual(given, pair) || found, false);
  };
}

/** A text's length and its beginning, always as long: how long the comparison takes tells nothing of what is expected. */
function padded(text: Buffer, size: number): Buffer {
  const bytes = Buffer.alloc(size);
  bytes.writeUInt32BE(text.length);
  text.copy(bytes, LENGTH_BYTES);
  return bytes;
}

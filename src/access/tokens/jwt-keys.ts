import { createHash, createSecretKey, type KeyObject } from 'node:crypto';
import type { RotatingSecret, TokenClass } from '../../platform/config/secrets.ts';

/** A key of a token class. `keyId` names class and key, so that verification tries no others. */
export interface JwtKey {
  keyId: string;
  tokenClass: TokenClass;
  /** For verification, by jose. */
  key: CryptoKey;
  /** For signatures; the same bytes. */
  secret: KeyObject;
}

/** The imported keys: for each class the one that signs, then the one that it has replaced. */
export interface JwtKeys {
  signing: Record<TokenClass, JwtKey>;
  byKeyId: ReadonlyMap<string, JwtKey>;
}

/** Imports the secrets as HMAC-SHA256 keys over the bytes of their UTF-8 text. */
export async function importJwtKeys(secrets: Record<TokenClass, RotatingSecret>): Promise<JwtKeys> {
  const [user, discover, legacy] = await Promise.all([
    importClass('user', secrets.user),
    importClass('discover', secrets.discover),
    importClass('legacy', secrets.legacy),
  ]);
  const all = [...user.all, ...discover.all, ...legacy.all];
  return {
    signing: { user: user.signing, discover: discover.signing, legacy: legacy.signing },
    byKeyId: new Map(all.map((key) => [key.keyId, key])),
  };
}

async function importClass(
  tokenClass: TokenClass,
  secret: RotatingSecret,
): Promise<{ signing: JwtKey; all: JwtKey[] }> {
  const signing = await importKey(tokenClass, secret.current);
  const previous = secret.previous === undefined ? [] : [await importKey(tokenClass, secret.previous)];
  return { signing, all: [signing, ...previous] };
}

async function importKey(tokenClass: TokenClass, secret: string): Promise<JwtKey> {
  const bytes = Buffer.from(secret, 'utf8');
  const hash = createHash('sha256').update('portcullis key id').update(bytes).digest('hex').slice(0, 16);
  const key = await crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign', 'verify']);
  return { keyId: `${tokenClass}.${hash}`, tokenClass, key, secret: createSecretKey(bytes) };
}

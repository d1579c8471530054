import { createHash, createSecretKey, type KeyObject } from 'node:crypto';
import type { RotatingSecret, TokenClass } from '../../platform/config/secrets.ts';

/** A key of a token class. `keyId` identifies class and key, so that verification needs to try no other. */
export interface JwtKey {
  keyId: string;
  tokenClass: TokenClass;
  /** The key in the form in which jose verifies signatures. */
  key: CryptoKey;
  /** The key in the form in which `node:crypto` signs. */
  secret: KeyObject;
}

/**
 * The imported keys: those that sign, by class, and all that verify (the current and the previous one of each class),
 * by key id.
 */
export interface JwtKeys {
  signing: Record<TokenClass, JwtKey>;
  byKeyId: ReadonlyMap<string, JwtKey>;
}

/** Imports the secrets as HMAC-SHA256 keys; the bytes of a key are the UTF-8 text of the secret. */
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

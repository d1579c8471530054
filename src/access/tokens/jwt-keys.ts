import { createHash, createSecretKey, type KeyObject } from 'node:crypto';
import { type RotatingSecret, secretsOf, type TokenClass } from '../../platform/config/secrets.ts';

/** A key of a token class. `keyId` identifies class and key, so that verification needs to try no other. */
export interface JwtKey {
  keyId: string;
  tokenClass: TokenClass;
  /** The key in the form in which jose verifies signatures. */
  key: CryptoKey;
  /** The key in the form in which `node:crypto` signs. */
  secret: KeyObject;
}

/** The imported keys. */
export interface JwtKeys {
  /** The key that signs; services issue only user tokens. */
  signing: JwtKey;
  /** The keys that verify, by key id: the current and the previous one of each class. */
  byKeyId: ReadonlyMap<string, JwtKey>;
}

/** Imports the secrets as HMAC-SHA256 keys; the bytes of a key are the UTF-8 text of the secret. */
export async function importJwtKeys(secrets: Record<TokenClass, RotatingSecret>): Promise<JwtKeys> {
  const imported = (['user', 'discover', 'legacy'] as const).flatMap((tokenClass) =>
    secretsOf(secrets[tokenClass]).map((secret) => importKey(tokenClass, secret)),
  );
  const [signing, ...otherKeys] = await Promise.all(imported);
  if (!signing) throw new Error('the class user has a key');
  return { signing, byKeyId: new Map([signing, ...otherKeys].map((key) => [key.keyId, key])) };
}

async function importKey(tokenClass: TokenClass, secret: string): Promise<JwtKey> {
  const bytes = Buffer.from(secret, 'utf8');
  const hash = createHash('sha256').update('portcullis key id').update(bytes).digest('hex').slice(0, 16);
  const key = await crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign', 'verify']);
  return { keyId: `${tokenClass}.${hash}`, tokenClass, key, secret: createSecretKey(bytes) };
}

import { createHmac, createSecretKey, randomUUID } from 'node:crypto';
import { SignJWT } from 'jose';
import type { PeerOptions } from './peer.ts';

export const LIFETIME_SECONDS = 3600;

const HEADER = { alg: 'HS256', typ: 'JWT', kid: 'bench' };

/** Signs a token with the claims that the product's have. */
export type Sign = (use: 'api' | 'refresh', nowSeconds: number) => string | Promise<string>;

/** Signs as the options say, with a key that is imported once. */
export async function signer(options: PeerOptions): Promise<Sign> {
  return options.signsBy === 'jose' ? joseSigner(options, await importKey(options.signingSecret)) : hmacSigner(options);
}

/** The secret as a key of WebCrypto, which jose uses as it is. */
export function importKey(secret: string, usage: 'sign' | 'verify' = 'sign'): Promise<CryptoKey> {
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  return crypto.subtle.importKey('raw', Buffer.from(secret, 'utf8'), algorithm, false, [usage]);
}

function joseSigner({ issuer, audience, clientId, scopes }: PeerOptions, key: CryptoKey): Sign {
  const scope = scopes.join(' ');
  return (use, nowSeconds) =>
    new SignJWT({ scope, client_id: clientId, token_use: use })
      .setProtectedHeader(HEADER)
      .setIssuer(issuer)
      .setSubject(clientId)
      .setAudience(audience)
      .setIssuedAt(nowSeconds)
      .setJti(randomUUID())
      .setExpirationTime(nowSeconds + LIFETIME_SECONDS)
      .sign(key);
}

/** The same by node:crypto alone, on the event loop. */
function hmacSigner({ issuer, audience, clientId, scopes, signingSecret }: PeerOptions): Sign {
  const key = createSecretKey(signingSecret, 'utf8');
  const header = Buffer.from(JSON.stringify(HEADER)).toString('base64url');
  const common = { scope: scopes.join(' '), client_id: clientId, iss: issuer, sub: clientId, aud: audience };
  return (use, iat) => {
    const claims = { ...common, token_use: use, iat, jti: randomUUID(), exp: iat + LIFETIME_SECONDS };
    const signed = `${header}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}`;
    return `${signed}.${createHmac('sha256', key).update(signed).digest('base64url')}`;
  };
}

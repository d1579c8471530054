import { createHmac } from 'node:crypto';
import type { JwtKey } from './jwt-keys.ts';

/** Signs claims as a compact JWT. */
export type SignJwt = (claims: object) => string;

/**
 * Signs with one key: HS256 in compact serialisation (RFC 7515 section 3.1, RFC 7518 section 3.2). It does not go
 * through Web Cryptography, whose thread costs ten times the signature (docs/decisions/007-signing.md).
 */
export function jwtSigner({ keyId, secret }: JwtKey): SignJwt {
  const header = base64url(JSON.stringify({ alg: 'HS256', typ: 'JWT', kid: keyId }));
  return (claims) => {
    const signingInput = `${header}.${base64url(JSON.stringify(claims))}`;
    return `${signingInput}.${createHmac('sha256', secret).update(signingInput).digest('base64url')}`;
  };
}

function base64url(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64url');
}

import { createHmac, type KeyObject } from 'node:crypto';

/**
 * Creates a function that signs claims with one key: HS256 in compact serialization (RFC 7515 section 3.1, RFC 7518
 * section 3.2). It does not use the Web Cryptography API, whose thread costs ten times as much as the signature
 * (docs/decisions/007-signing.md).
 */
export function jwtSigner({
  keyId,
  secret,
}: {
  readonly keyId: string;
  readonly secret: KeyObject;
}): (claims: object) => string {
  const header = Buffer.from(JSON.stringify({ alg: 'HS256', typ: 'JWT', kid: keyId })).toString('base64url');
  return (claims) => {
    const signingInput = `${header}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}`;
    return `${signingInput}.${createHmac('sha256', secret).update(signingInput).digest('base64url')}`;
  };
}

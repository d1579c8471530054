import type { KeyObject } from 'node:crypto';
import { SignJWT } from 'jose';

/** Signs claims by jose. */
export function jwtSigner({ keyId, secret }: { keyId: string; secret: KeyObject }) {
  return (claims: object): Promise<string> =>
    new SignJWT({ ...claims }).setProtectedHeader({ alg: 'HS256', typ: 'JWT', kid: keyId }).sign(secret);
}

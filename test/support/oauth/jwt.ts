import { createHmac, randomUUID } from 'node:crypto';
import type { Portcullis } from '../harness.ts';

type Claims = Record<string, unknown>;

interface Spelling {
  secret?: string;
  header?: Claims;
  hash?: 'sha256' | 'sha512';
}

/** Signs claims by hand, with node:crypto alone: what a library would refuse to write can be sent too. */
export function signed(p: Portcullis, claims: Claims, spelling: Spelling = {}): string {
  return signedText(p, JSON.stringify(claims), spelling);
}

/** Signs a payload that need not be what `JSON.stringify` writes. */
export function signedText(
  p: Portcullis,
  payload: string,
  { secret, header = {}, hash = 'sha256' }: Spelling = {},
): string {
  const key = secret ?? p.service.context.secrets.jwt.user.current;
  const head = encoded({ alg: 'HS256', typ: 'JWT', ...header });
  const input = `${head}.${Buffer.from(payload).toString('base64url')}`;
  return `${input}.${createHmac(hash, key).update(input).digest('base64url')}`;
}

/** The claims of a good API token of the demo client, for a table to change; an undefined one is left out. */
export function apiClaims(p: Portcullis, changes: Claims = {}): Claims {
  const now = Math.floor(p.service.context.nowMs() / 1000);
  const { client, node_id } = p.demo;
  return {
    iss: p.url,
    sub: client.client_id,
    aud: node_id,
    iat: now,
    exp: now + 600,
    jti: randomUUID(),
    scope: 'accounts:read',
    client_id: client.client_id,
    token_use: 'api',
    ...changes,
  };
}

export function encoded(part: unknown): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url');
}

/** A refresh token is refused once this old, whatever the client's settings (specification section 8). */
const MAX_AGE_MS = 365 * 24 * 3600 * 1000;

/** What a refresh token says of its grantee. */
export interface RefreshClaims {
  subject: string;
  nodeId: string;
  clientId: string;
  /** Present on the refresh token of a login. */
  sessionId: string | undefined;
}

/** The claims of a refresh token that may be redeemed now; undefined for an expired or too old one, or another token. */
export function refreshClaims(claims: Readonly<Record<string, unknown>>, nowMs: number): RefreshClaims | undefined {
  const { token_use: use, sub, aud, client_id: clientId, sid, iat, exp } = claims;
  if (use !== 'refresh' || typeof sub !== 'string' || typeof aud !== 'string' || typeof clientId !== 'string') {
    return undefined;
  }
  if (typeof iat !== 'number' || nowMs - iat * 1000 > MAX_AGE_MS) return undefined;
  if (exp !== undefined && (typeof exp !== 'number' || exp * 1000 <= nowMs)) return undefined;
  if (sid !== undefined && typeof sid !== 'string') return undefined;
  return { subject: sub, nodeId: aud, clientId, sessionId: sid };
}

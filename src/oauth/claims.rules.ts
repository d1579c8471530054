import type { TokenClass } from '../config/secrets.ts';
import { isUuid } from '../lib/input.ts';
import { hasForbiddenText } from '../lib/json.ts';
import type { Principal } from './principal.ts';

/** The last time that a `Date` can be. */
const LAST_INSTANT_MS = 8.64e15;

type Claims = Readonly<Record<string, unknown>>;

/**
 * The principal of an access token's claims, or undefined where they do not hold: expired, not yet valid, a refresh
 * token, no subject, an audience that is no node id, or a user-class token that does not say what it is for.
 */
export function principalFromClaims(tokenClass: TokenClass, claims: Claims, nowMs: number): Principal | undefined {
  const tokenUse = tokenUseOf(tokenClass, claims.token_use);
  const times = timesOf(claims, nowMs);
  const { sub, aud, scope, client_id: clientId, sid, jti, family, iat } = claims;
  if (!tokenUse || !times || !isClaimText(sub) || sub === '') return undefined;
  if (typeof aud !== 'string' || !isUuid(aud)) return undefined;
  if (!isOptionalText(scope) || !isOptionalText(clientId) || !isOptionalText(sid)) return undefined;
  if (!isOptionalText(jti) || !isOptionalText(family)) return undefined;
  const permissions = tokenUse === 'forgot_password' ? [] : (scope ?? '').split(' ').filter((name) => name !== '');
  return {
    tokenClass,
    tokenUse,
    subject: sub,
    nodeId: aud.toLowerCase(),
    clientId,
    sessionId: sid,
    tokenId: jti,
    familyId: family,
    issuedAt: typeof iat === 'number' ? iat : undefined,
    permissions: new Set(permissions),
    expiresAtMs: times.expiresAtMs,
  };
}

/** Whether a token's time is over, whatever else is the matter with it. */
export function hasExpired({ exp }: Claims, nowMs: number): boolean {
  return typeof exp === 'number' && exp * 1000 <= nowMs;
}

function tokenUseOf(tokenClass: TokenClass, use: unknown): Principal['tokenUse'] | undefined {
  switch (use) {
    case 'login':
    case 'api':
    case 'forgot_password':
      return use;
    case undefined:
      return tokenClass === 'user' ? undefined : 'api';
    default:
      return undefined;
  }
}

function timesOf(claims: Claims, nowMs: number): { expiresAtMs: number | undefined } | undefined {
  const { exp, nbf, iat } = claims;
  if (iat !== undefined && typeof iat !== 'number') return undefined;
  if (nbf !== undefined && (typeof nbf !== 'number' || nbf * 1000 > nowMs)) return undefined;
  if (exp === undefined) return { expiresAtMs: undefined };
  if (typeof exp !== 'number' || !Number.isFinite(exp) || exp * 1000 <= nowMs) return undefined;
  return { expiresAtMs: Math.min(exp * 1000, LAST_INSTANT_MS) };
}

function isOptionalText(value: unknown): value is string | undefined {
  return value === undefined || isClaimText(value);
}

/** Whether a claim is a text that can be stored. */
export function isClaimText(value: unknown): value is string {
  return typeof value === 'string' && !hasForbiddenText(value);
}

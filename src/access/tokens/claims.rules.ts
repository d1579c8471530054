import { isUuid } from '../../lib/input.ts';
import { hasForbiddenText } from '../../lib/json.ts';
import type { TokenClass } from '../../platform/config/secrets.ts';
import type { Principal } from '../identity/principal.ts';

/** The latest time that a `Date` can represent, in ms since 1970. */
const LAST_INSTANT_MS = 8.64e15;

type Claims = Readonly<Record<string, unknown>>;

/**
 * Returns the principal of an access token; undefined when its claims are not acceptable: it has expired, is not yet
 * valid, is a refresh token, has no subject, has an audience that is not a tenant's id, or is of the user class and has
 * no `token_use`.
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

/** Checks whether a token has expired, whatever else is wrong with it. */
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

/** Checks whether a claim is absent or a text that can be stored. */
export function isOptionalText(value: unknown): value is string | undefined {
  return value === undefined || isClaimText(value);
}

/** Checks whether a claim is a text that can be stored. */
export function isClaimText(value: unknown): value is string {
  return typeof value === 'string' && !hasForbiddenText(value);
}

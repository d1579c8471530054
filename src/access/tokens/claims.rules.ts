import { isUuid } from '../../lib/input.ts';
import { hasForbiddenText } from '../../lib/json.ts';
import type { TokenClass } from '../../platform/config/secrets.ts';
import { anotherClass, InvalidTokenError, type Principal } from '../identity/callers.ts';

/** The latest time that a `Date` can represent, in ms since 1970. */
const LAST_INSTANT_MS = 8.64e15;
/** How far, in ms, the clock of an issuer of legacy or discover tokens may be ahead of this process's clock. */
const MAX_SKEW_MS = 60_000;

type Claims = Readonly<Record<string, unknown>>;

/**
 * Returns the claims of a legacy or discover token as a user token would have them. Their issuers are other programs: a
 * claim that is null counts as absent, an `aud` of one element as that element, and a `scope` may be an array of names.
 */
export function normalizeClaims(claims: Claims): Claims {
  const normalized: Record<string, unknown> = Object.fromEntries(
    Object.entries(claims).filter(([, claim]) => claim !== null),
  );
  if (Array.isArray(normalized.aud) && normalized.aud.length === 1) [normalized.aud] = normalized.aud;
  if (Array.isArray(normalized.scope) && normalized.scope.every(isClaimText))
    normalized.scope = normalized.scope.join(' ');
  return normalized;
}

/**
 * Returns the principal of an access token.
 * @throws InvalidTokenError with the reason when it has expired, is not yet valid, is a refresh token, has an audience
 * that is not a tenant's id, has no subject, or belongs to the user class and has no `token_use`.
 */
export function principalFromClaims(tokenClass: TokenClass, claims: Claims, nowMs: number): Principal {
  const { sub, aud, exp, nbf, iat, scope, client_id: clientId, sid, jti, family } = claims;
  if (typeof exp === 'number' && exp * 1000 <= nowMs) throw new InvalidTokenError('expired');
  if (claims.token_use === 'refresh') throw anotherClass('refresh', 'access');
  const latestMs = tokenClass === 'user' ? nowMs : nowMs + MAX_SKEW_MS;
  if (typeof nbf === 'number' && nbf * 1000 > latestMs) throw new InvalidTokenError('not_yet_valid');
  if (typeof aud !== 'string' || !isUuid(aud)) throw new InvalidTokenError('audience');
  const tokenUse = tokenUseOf(tokenClass, claims.token_use);
  const invalid = new InvalidTokenError('invalid_claims');
  if (!tokenUse || ![exp, nbf, iat].every(isOptionalTime) || !isClaimText(sub) || sub === '') throw invalid;
  const areTexts = isOptionalText(scope) && isOptionalText(clientId) && isOptionalText(sid) && isOptionalText(jti);
  if (!areTexts || !isOptionalText(family)) throw invalid;
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
    expiresAtMs: typeof exp === 'number' ? Math.min(exp * 1000, LAST_INSTANT_MS) : undefined,
  };
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

function isOptionalTime(value: unknown): boolean {
  return value === undefined || Number.isFinite(value);
}

/** Checks whether a claim is absent or a text that can be stored. */
export function isOptionalText(value: unknown): value is string | undefined {
  return value === undefined || isClaimText(value);
}

/** Checks whether a claim is a text that can be stored. */
export function isClaimText(value: unknown): value is string {
  return typeof value === 'string' && !hasForbiddenText(value);
}

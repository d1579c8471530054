import { createHash } from 'node:crypto';
import { isUuid } from '../../lib/input.ts';
import { hasForbiddenText } from '../../lib/json.ts';
import type { TokenClass } from '../../platform/config/secrets.ts';
import { anotherClass, InvalidTokenError, type Principal } from '../identity/callers.ts';

/** The end of the year 9999, the last that ISO 8601 writes with four digits, in ms since 1970. */
const LAST_INSTANT_MS = 253_402_300_799_999;
/** How far, in ms, the clock of an issuer of legacy or discover tokens may be ahead of this process's clock. */
const MAX_ISSUER_SKEW_MS = 60_000;

type Claims = Readonly<Record<string, unknown>>;

const USES = ['login', 'api', 'forgot_password'] as const satisfies Principal['tokenUse'][];

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
  const latestMs = tokenClass === 'user' ? nowMs : nowMs + MAX_ISSUER_SKEW_MS;
  if (typeof nbf === 'number' && nbf * 1000 > latestMs) throw new InvalidTokenError('not_yet_valid');
  if (typeof aud !== 'string' || !isUuid(aud)) throw new InvalidTokenError('audience');
  const use = claims.token_use ?? (tokenClass === 'user' ? undefined : 'api');
  const tokenUse = USES.find((known) => known === use);
  const invalid = new InvalidTokenError('invalid_claims');
  if (
    !tokenUse ||
    ![exp, nbf, iat].every((time) => time === undefined || Number.isFinite(time)) ||
    !isClaimText(sub) ||
    sub === ''
  )
    throw invalid;
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

/** Checks whether a claim is absent or a text that can be stored. */
function isOptionalText(value: unknown): value is string | undefined {
  return value === undefined || isClaimText(value);
}

/** Checks whether a claim is a text that can be stored. */
function isClaimText(value: unknown): value is string {
  return typeof value === 'string' && !hasForbiddenText(value);
}

/** The age, in ms, from which a refresh token is refused, for any settings of the client (docs/contract.md, 8-03). */
export const MAX_REFRESH_AGE_MS = 365 * 24 * 3600 * 1000;
/** How far, in ms, the issuer's clock may be ahead of this process's clock. */
const MAX_SKEW_MS = 5 * 60_000;
/**
 * The time, in ms, after its first redemption in which a token may be redeemed again, because the response may have
 * been lost.
 */
const GRACE_MS = 10_000;

/** The claims of a refresh token. */
export interface RefreshClaims {
  subject: string;
  nodeId: string;
  clientId: string;
  /**
   * The session of a login; for a token without `iat` the session that its redemption creates. Undefined for a token of
   * a client itself.
   */
  sessionId: string | undefined;
  tokenId: string | undefined;
  /**
   * The id shared by all tokens that descend from one grant of a client; for a login without `iat` its session, for
   * other logins undefined.
   */
  familyId: string | undefined;
  /**
   * The time of issue in seconds since 1970; undefined for an old token without `iat`, which can be redeemed only once.
   */
  issuedAt: number | undefined;
  /** The expiry in ms since 1970; undefined for a token without `exp`. */
  expiresAtMs: number | undefined;
  /** The scope that a refresh must not exceed; undefined when its issue was not narrowed. */
  bound: readonly string[] | undefined;
}

/**
 * Returns the claims of a refresh token of this tenant that may be redeemed now; undefined when it has expired or is
 * too old, and for any other token. A token without `iat` is recognized only by its client and begins a new family.
 */
export function refreshClaims(
  claims: Claims,
  token: string,
  { nodeId, nowMs }: { nodeId: string; nowMs: number },
): RefreshClaims | undefined {
  const { sub: subject, client_id: clientId, exp, iat, nbf, scope } = claims;
  if (!isClaimText(subject) || !isClaimText(clientId)) return undefined;
  if (nbf !== undefined && (!isFiniteNumber(nbf) || nbf * 1000 > nowMs)) return undefined;
  if (exp !== undefined && (!isFiniteNumber(exp) || exp * 1000 <= nowMs)) return undefined;
  const expiresAtMs = exp === undefined ? undefined : exp * 1000;
  const bound = claims.narrowed === true ? String(scope).split(' ') : undefined;
  const holder = { subject, nodeId, clientId: clientId.toLowerCase(), expiresAtMs, bound };
  if (iat === undefined) {
    const isClient = subject.toLowerCase() === holder.clientId;
    const kinship = firstKinship(claims, token, { nodeId, isClient });
    return kinship && { ...holder, ...kinship, issuedAt: undefined };
  }
  if (!isFiniteNumber(iat) || nowMs - iat * 1000 > MAX_REFRESH_AGE_MS) return undefined;
  if (iat * 1000 - nowMs > MAX_SKEW_MS) return undefined;
  const kinship = kinshipOf(claims, nodeId);
  return kinship && { ...holder, ...kinship, issuedAt: iat };
}

/**
 * Returns the time from which a refresh token cannot be redeemed any more, in ms since 1970; infinity when no time ends
 * it.
 */
export function redeemableUntilMs({
  issuedAt = Number.POSITIVE_INFINITY,
  expiresAtMs = Number.POSITIVE_INFINITY,
}: RefreshClaims): number {
  return Math.min(expiresAtMs, issuedAt * 1000 + MAX_REFRESH_AGE_MS);
}

/** Checks whether a token that was redeemed at `spentAtMs` may be redeemed again. */
export function isInGrace(spentAtMs: number, nowMs: number): boolean {
  return nowMs - spentAtMs <= GRACE_MS;
}

/** Returns the SHA-256 hash of a compact JWT without its signature, which identifies the token. */
export function digestOf(token: string): Buffer {
  return createHash('sha256')
    .update(token.slice(0, token.lastIndexOf('.')))
    .digest();
}

type Kinship = Pick<RefreshClaims, 'sessionId' | 'tokenId' | 'familyId'>;

function kinshipOf({ token_use: use, aud, sid, jti, family }: Claims, nodeId: string): Kinship | undefined {
  if (use !== 'refresh' || typeof aud !== 'string' || aud.toLowerCase() !== nodeId) return undefined;
  if (!isOptionalText(sid) || !isOptionalText(jti) || !isOptionalText(family)) return undefined;
  return { sessionId: sid, tokenId: jti, familyId: family };
}

/**
 * Derives the session and family of a token without `iat` from the token itself, so that its revocation or reuse
 * revokes everything that descends from it.
 */
function firstKinship(
  { token_use: use, aud, jti }: Claims,
  token: string,
  { nodeId, isClient }: { nodeId: string; isClient: boolean },
): Kinship | undefined {
  if (use !== undefined && use !== 'refresh') return undefined;
  if (typeof aud === 'string' && isUuid(aud) && aud.toLowerCase() !== nodeId) return undefined;
  const hex = digestOf(token).toString('hex');
  if (!isClient) {
    // A UUID of version 8 (RFC 9562 section 5.8).
    const sessionId = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
    return { sessionId, tokenId: undefined, familyId: sessionId };
  }
  const tokenId = isClaimText(jti) ? jti : undefined;
  return { sessionId: undefined, tokenId, familyId: tokenId ?? hex };
}

function isFiniteNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}

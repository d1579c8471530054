import { createHash } from 'node:crypto';
import { isUuid } from '../../lib/input.ts';
import { isClaimText, isOptionalText } from '../tokens/claims.rules.ts';

/** The age from which a refresh token is refused, whatever the client's settings (specification section 8). */
export const MAX_REFRESH_AGE_MS = 365 * 24 * 3600 * 1000;
/** How far the clock of an issuer may be ahead of this one. */
const MAX_SKEW_MS = 5 * 60_000;
/** How long after its first redemption a token may be redeemed again: a response can get lost. */
const GRACE_MS = 10_000;

/** The claims of a refresh token. */
export interface RefreshClaims {
  subject: string;
  nodeId: string;
  clientId: string;
  /** The session of a login; for a token without `iat` the session that it begins. */
  sessionId: string | undefined;
  tokenId: string | undefined;
  /** Shared by all tokens that descend from one grant of a client; for a login it is the session. */
  familyId: string | undefined;
  /**
   * In seconds since the epoch; undefined for a token from before there were issue times, which can be redeemed once.
   */
  issuedAt: number | undefined;
  /** Milliseconds since the epoch; undefined for a token without `exp`. */
  expiresAtMs: number | undefined;
}

type Claims = Readonly<Record<string, unknown>>;

/**
 * Returns the claims of a refresh token of this tenant that may be redeemed now; undefined for one that has expired or
 * is too old, and for any other token. A token without `iat` is recognised by its client alone, and begins a family.
 */
export function refreshClaims(
  claims: Claims,
  token: string,
  { nodeId, nowMs }: { nodeId: string; nowMs: number },
): RefreshClaims | undefined {
  const { sub: subject, client_id: clientId, exp, iat, nbf } = claims;
  if (!isClaimText(subject) || !isClaimText(clientId)) return undefined;
  if (nbf !== undefined && (!isFiniteNumber(nbf) || nbf * 1000 > nowMs)) return undefined;
  if (exp !== undefined && (!isFiniteNumber(exp) || exp * 1000 <= nowMs)) return undefined;
  const expiresAtMs = exp === undefined ? undefined : exp * 1000;
  const who = { subject, nodeId, clientId: clientId.toLowerCase(), expiresAtMs };
  if (iat === undefined) {
    const isClient = subject.toLowerCase() === who.clientId;
    const kinship = firstKinship(claims, token, { nodeId, isClient });
    return kinship && { ...who, ...kinship, issuedAt: undefined };
  }
  if (!isFiniteNumber(iat) || nowMs - iat * 1000 > MAX_REFRESH_AGE_MS) return undefined;
  if (iat * 1000 - nowMs > MAX_SKEW_MS) return undefined;
  const kinship = kinshipOf(claims, nodeId);
  return kinship && { ...who, ...kinship, issuedAt: iat };
}

/**
 * Returns the time from which a refresh token cannot be redeemed, in milliseconds since the epoch; undefined where only
 * its redemption ends it.
 */
export function redeemableUntilMs({ issuedAt, expiresAtMs }: RefreshClaims): number | undefined {
  if (issuedAt === undefined) return expiresAtMs;
  return Math.min(expiresAtMs ?? Number.POSITIVE_INFINITY, issuedAt * 1000 + MAX_REFRESH_AGE_MS);
}

/** Returns whether a token that was redeemed at `spentAtMs` may be redeemed again. */
export function isInGrace(spentAtMs: number, nowMs: number): boolean {
  return nowMs - spentAtMs <= GRACE_MS;
}

/** Returns the SHA-256 of the signing input of a compact JWT, which identifies the token. */
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

/** Derives session and family from the token itself, so that revoking or reusing it ends what it began. */
function firstKinship(
  { token_use: use, aud, jti }: Claims,
  token: string,
  { nodeId, isClient }: { nodeId: string; isClient: boolean },
): Kinship | undefined {
  if (use !== undefined && use !== 'refresh') return undefined;
  if (typeof aud === 'string' && isUuid(aud) && aud.toLowerCase() !== nodeId) return undefined;
  if (!isClient) {
    const sessionId = sessionIdOf(token);
    return { sessionId, tokenId: undefined, familyId: sessionId };
  }
  const tokenId = isClaimText(jti) ? jti : undefined;
  return { sessionId: undefined, tokenId, familyId: tokenId ?? digestOf(token).toString('hex') };
}

/** Derives a UUID from a token (version 8, RFC 9562 section 5.8). */
function sessionIdOf(token: string): string {
  const hex = digestOf(token).toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

function isFiniteNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}

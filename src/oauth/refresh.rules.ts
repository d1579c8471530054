import { createHash } from 'node:crypto';
import { isUuid } from '../lib/input.ts';
import { isClaimText } from './claims.rules.ts';

/** A refresh token is refused once this old, whatever the client's settings (specification section 8). */
export const MAX_REFRESH_AGE_MS = 365 * 24 * 3600 * 1000;
/** How far ahead of ours the clock of whoever issued a token may be. */
const MAX_SKEW_MS = 5 * 60_000;
/** A response can get lost: whoever has spent a token may spend it again for so long. */
const GRACE_MS = 10_000;

/** What a refresh token says of its grantee. */
export interface RefreshClaims {
  subject: string;
  nodeId: string;
  clientId: string;
  /** Present on the refresh token of a login; of one without `iat` the session that it begins. */
  sessionId: string | undefined;
  tokenId: string | undefined;
  /** What the pairs of one client's grant have in common; of a login it is the session. */
  familyId: string | undefined;
  /** Whole seconds since the epoch; undefined for a token from before there were issue times: good for once. */
  issuedAt: number | undefined;
  /** Milliseconds since the epoch; undefined for a token without `exp`. */
  expiresAtMs: number | undefined;
}

type Claims = Readonly<Record<string, unknown>>;

/**
 * The claims of a refresh token of this node that may be redeemed now; undefined for an expired or too old one, or
 * another token. One without `iat` is known by its client alone, whatever else it carries, and begins a family.
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

/** When a refresh token can be redeemed no more; undefined where only its being spent ends it. */
export function redeemableUntilMs({ issuedAt, expiresAtMs }: RefreshClaims): number | undefined {
  if (issuedAt === undefined) return expiresAtMs;
  return Math.min(expiresAtMs ?? Number.POSITIVE_INFINITY, issuedAt * 1000 + MAX_REFRESH_AGE_MS);
}

/** Whether a token that was spent then may be spent now. */
export function isInGrace(spentAtMs: number, nowMs: number): boolean {
  return nowMs - spentAtMs <= GRACE_MS;
}

/** The SHA-256 of what a compact JWT's signature is over: of each token there is one. */
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

/** Both are those of the token itself, so that revoking it, or using it again, ends what it began. */
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

/** A UUID of a token's own (RFC 9562 section 5.8). */
function sessionIdOf(token: string): string {
  const hex = digestOf(token).toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

function isFiniteNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}

function isOptionalText(value: unknown): value is string | undefined {
  return value === undefined || isClaimText(value);
}

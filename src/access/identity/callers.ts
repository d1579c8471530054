import type { RequestLimits } from '../../platform/cache/counts.rules.ts';
import type { TokenClass } from '../../platform/config/secrets.ts';
import { noToken, Refusal } from '../../platform/errors.ts';

/** A client as used by the token endpoint, the client guards and the gateway. */
export interface ClientRecord {
  clientId: string;
  nodeId: string;
  name: string;
  grantTypes: readonly string[];
  scopes: readonly string[];
  tokenExpiry: { enabled: boolean; durationSeconds: number };
  allowedIps: readonly string[];
  requireCertificate: boolean;
  certFingerprint: string | undefined;
  limits: RequestLimits;
  refreshReuseDetection: boolean;
  /** Whether only the console's sessions are for it (docs/contract.md, D3-40); it has no secret. */
  isConsole: boolean;
  active: boolean;
  /** The time, in seconds since 1970, from which tokens are valid; earlier ones are revoked. */
  tokensFromSeconds: number;
  /**
   * The time, in seconds since 1970, from which the client's own tokens are valid; never before `tokensFromSeconds`.
   */
  ownTokensFromSeconds: number;
}

/** The caller for whom a verified access token speaks. `nodeId` is the tenant whose data it may access. */
export interface Principal {
  tokenClass: TokenClass;
  /** The use for which the token was issued (docs/contract.md, D3-02). */
  tokenUse: 'login' | 'api' | 'forgot_password';
  subject: string;
  nodeId: string;
  clientId: string | undefined;
  sessionId: string | undefined;
  tokenId: string | undefined;
  /** The id that an API token shares with all tokens refreshed from its pair; undefined when it has none. */
  familyId: string | undefined;
  /** The time of issue in seconds since 1970; undefined when the token does not carry it. */
  issuedAt: number | undefined;
  permissions: ReadonlySet<string>;
  /** The expiry in milliseconds since 1970; undefined when the token does not expire. */
  expiresAtMs: number | undefined;
}

/** The caller of a domain function, independent of the kind of request. */
export interface Caller {
  nodeId: string;
  subject: string;
  clientId: string | undefined;
  permissions: ReadonlySet<string>;
  correlationId: string;
  /** The W3C trace context of the request; undefined when it has none. */
  traceparent: string | undefined;
}

/** The content of a token whose signature is valid; its claims have not been checked. */
export interface SignedToken {
  tokenClass: TokenClass;
  claims: Readonly<Record<string, unknown>>;
}

/** Returns the needed permissions that the principal lacks. */
export function missingPermissions({ permissions }: Principal, needed: readonly string[]): string[] {
  return needed.filter((name) => !permissions.has(name));
}

/**
 * Returns the bearer token of an Authorization header (RFC 6750 section 2.1).
 * @throws Refusal `unauthorized` when there is no token or when it contains white space.
 */
export function bearerOf(authorization: string | undefined): string {
  const bearer = /^Bearer +(\S.*)$/i.exec(authorization ?? '')?.[1];
  if (bearer === undefined) throw noToken();
  if (/\s/.test(bearer)) throw new InvalidTokenError('malformed');
  return bearer;
}

/**
 * Refuses a token that only serves to set a new password, where no permission of the endpoint refuses it.
 * @throws InvalidTokenError for such a token.
 */
export function refuseForgotPassword({ tokenUse }: Principal): void {
  if (tokenUse === 'forgot_password') throw anotherClass(tokenUse, 'login or api');
}

/**
 * The reason for which an access token is refused. `malformed`: not a JWT in its one spelling. `signature`: made with
 * none of the keys that its class and key id allow. `another_class`: valid, but not for this endpoint. `audience`: not
 * one known tenant, or another than its client's. `not_admitted`: its client does not exist.
 */
type TokenFault =
  | 'malformed'
  | 'signature'
  | 'another_class'
  | 'invalid_claims'
  | 'audience'
  | 'not_yet_valid'
  | 'expired'
  | 'not_admitted'
  | 'revoked'
  | SecretFault;

/** The reason for which a client secret is refused; the caller is not told it. */
export type SecretFault = 'unknown_client' | 'client_disabled' | 'wrong_secret' | 'expired_secret';

/** The descriptions for callers, only of tokens with a valid signature; for all others the reason is not disclosed. */
const DESCRIPTIONS: Partial<Record<TokenFault, string>> = {
  another_class: 'the token belongs to another class',
  expired: 'the token has expired',
  revoked: 'the token has been revoked',
};

/** Thrown when an access token is refused: `invalid_token` (RFC 6750 section 3.1). */
export class InvalidTokenError extends Refusal {
  /** The reason in words for the caller. */
  readonly description: string;

  /** `detail` follows the description for the caller. */
  constructor(reason: TokenFault, detail = '') {
    const description = `${DESCRIPTIONS[reason] ?? 'the token is not valid'}${detail}`;
    const challenge = `Bearer error="invalid_token", error_description="${description}"`;
    super('unauthorized', { reason, challenge });
    this.description = description;
  }

  /** How a token that was valid before has ended. */
  get end(): 'expired' | 'revoked' {
    return this.details.reason === 'expired' ? 'expired' : 'revoked';
  }
}

/** Makes the error for a token with a valid signature whose class or use the endpoint does not accept. */
export function anotherClass(actual: string, needed: string): InvalidTokenError {
  return new InvalidTokenError('another_class', `: ${actual}, but ${needed} is required`);
}

/** Returns the result of `check`, or undefined when it throws an InvalidTokenError. Any other error is rethrown. */
export async function unlessInvalid<Result>(check: () => Result | Promise<Result>): Promise<Result | undefined> {
  try {
    return await check();
  } catch (error) {
    if (error instanceof InvalidTokenError) return undefined;
    throw error;
  }
}

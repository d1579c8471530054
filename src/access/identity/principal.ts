import type { TokenClass } from '../../platform/config/secrets.ts';
import { noToken } from '../../platform/errors.ts';
import { anotherClass, InvalidTokenError } from './invalid-token.ts';

/** The use for which a token was issued (docs/contract.md, D3-02). */
export type TokenUse = 'login' | 'api' | 'forgot_password' | 'refresh';

/** The caller for whom a verified access token speaks. `nodeId` is the tenant whose data it may access. */
export interface Principal {
  tokenClass: TokenClass;
  tokenUse: Exclude<TokenUse, 'refresh'>;
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

import type { TokenClass } from '../../platform/config/secrets.ts';
import { noToken } from '../../platform/errors.ts';
import { InvalidTokenError } from './invalid-token.ts';

/** What a token may be used for (decisions: tokens). */
export type TokenUse = 'login' | 'api' | 'forgot_password' | 'refresh';

/** Who a verified access token speaks for. `nodeId` is the tenant whose data it can see. */
export interface Principal {
  tokenClass: TokenClass;
  tokenUse: Exclude<TokenUse, 'refresh'>;
  subject: string;
  nodeId: string;
  clientId: string | undefined;
  sessionId: string | undefined;
  tokenId: string | undefined;
  /** Shared by an API token and all that are refreshed from its pair. */
  familyId: string | undefined;
  /** In seconds since the epoch; undefined where the token does not say it. */
  issuedAt: number | undefined;
  permissions: ReadonlySet<string>;
  /** In milliseconds since the epoch; undefined where the token does not expire. */
  expiresAtMs: number | undefined;
}

/** Who calls a domain function, free of the request that brought the call. */
export interface Caller {
  nodeId: string;
  subject: string;
  clientId: string | undefined;
  permissions: ReadonlySet<string>;
  correlationId: string;
  /** W3C trace context of the request, where it is traced. */
  traceparent: string | undefined;
}

/** A token whose signature is valid; its claims are unchecked. */
export interface SignedToken {
  tokenClass: TokenClass;
  claims: Readonly<Record<string, unknown>>;
}

/** Returns the permissions that are needed and that the principal does not have. */
export function missingPermissions({ permissions }: Principal, needed: readonly string[]): string[] {
  return needed.filter((name) => !permissions.has(name));
}

/**
 * Returns the bearer token of an Authorization header (RFC 6750 section 2.1).
 * @throws AppError 401 where there is none, or more than one word.
 */
export function bearerOf(authorization: string | undefined): string {
  const shown = /^Bearer +(\S.*)$/i.exec(authorization ?? '')?.[1];
  if (shown === undefined) throw noToken();
  if (/\s/.test(shown)) throw new InvalidTokenError('malformed');
  return shown;
}

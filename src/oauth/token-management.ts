import type { ClientRecord } from '../clients/client-record.ts';
import { AppError } from '../errors/app-error.ts';
import type { Supervisors } from '../supervisors/supervisors.service.ts';
import type { AccessDirectory } from './access-directory.ts';
import { principalFromClaims } from './claims.rules.ts';
import type { Principal, TokenUse } from './principal.ts';
import type { RefreshClaims } from './refresh.rules.ts';
import { isOfClient, type RefreshTokens } from './refresh-tokens.ts';
import type { Revocations } from './revocations.ts';
import type { SignedToken } from './signed-token.ts';
import type { TokenJudge } from './token-judge.ts';
import type { TokenVerifier } from './token-verifier.ts';

interface ManagementParts {
  verifier: TokenVerifier;
  judge: TokenJudge;
  directory: AccessDirectory;
  supervisors: Supervisors;
  refreshTokens: RefreshTokens;
  revocations: Revocations;
  nowMs(): number;
}

/** What introspection tells (RFC 7662 section 2.2). */
export type Introspection = { active: false } | ActiveToken;

interface ActiveToken {
  active: true;
  scope: string | undefined;
  /** Of a login. */
  username: string | undefined;
  token_type?: 'Bearer';
  client_id: string | undefined;
  exp: number | undefined;
  iat: number | undefined;
  sub: string | undefined;
  aud: string | undefined;
  iss: string | undefined;
  jti: string | undefined;
  token_use: TokenUse;
}

const INACTIVE: Introspection = { active: false };

/** Revokes tokens and tells about them, for a client that is authenticated. */
export class TokenManagement {
  readonly #parts: ManagementParts;

  constructor(parts: ManagementParts) {
    this.#parts = parts;
  }

  /**
   * Ends a token of this client (RFC 7009 section 2.1): an access token itself; a refresh token with its family or
   * session and every access token of it. What is no token of this client, or has ended, is left alone.
   */
  async revoke(token: string, client: ClientRecord): Promise<void> {
    const { refreshTokens, revocations } = this.#parts;
    const signed = await this.#signed(token);
    const principal = signed && this.#principalOf(signed);
    if (principal?.nodeId === client.nodeId && principal.clientId?.toLowerCase() === client.clientId) {
      const { nodeId, tokenId, expiresAtMs } = principal;
      if (tokenId === undefined) return;
      await revocations.revokeToken({ nodeId, clientId: client.clientId, tokenId, expiresAtMs });
      return;
    }
    const claims = await refreshTokens.claimsOf(token, client);
    if (claims) await revocations.revokeFamily(claims, client);
  }

  /**
   * What a token of this client's node says, where it would be accepted now; of every other nothing but that
   * (RFC 7662 section 2.2).
   */
  async introspect(token: string, client: ClientRecord): Promise<Introspection> {
    const signed = await this.#signed(token);
    if (!signed) return INACTIVE;
    const principal = this.#principalOf(signed);
    return principal
      ? this.#introspectAccess(signed, principal, client)
      : this.#introspectRefresh(token, signed, client);
  }

  async #introspectAccess(signed: SignedToken, principal: Principal, client: ClientRecord): Promise<Introspection> {
    const { nodeId, tokenUse, subject, permissions } = principal;
    if (nodeId !== client.nodeId || !(await this.#parts.judge.isGood(principal))) return INACTIVE;
    const isLogin = tokenUse === 'login';
    return {
      active: true,
      scope: [...permissions].join(' '),
      username: isLogin ? await this.#usernameOf(nodeId, subject) : undefined,
      token_type: 'Bearer',
      ...membersOf(signed.claims),
      token_use: tokenUse,
    };
  }

  /** A refresh token is no Bearer token: it has no `token_type`. */
  async #introspectRefresh(token: string, signed: SignedToken, { nodeId }: ClientRecord): Promise<Introspection> {
    const { directory, refreshTokens } = this.#parts;
    const { client_id: clientId, scope } = signed.claims;
    const owner = typeof clientId === 'string' ? await directory.client(clientId) : undefined;
    if (owner?.nodeId !== nodeId) return INACTIVE;
    const claims = await refreshTokens.claimsOf(token, owner);
    if (!claims || !(await refreshTokens.isRedeemable(token, claims, owner))) return INACTIVE;
    return {
      active: true,
      scope: textOf(scope),
      username: await this.#loginNameOf(claims),
      ...membersOf(signed.claims),
      token_use: 'refresh',
    };
  }

  #loginNameOf(claims: RefreshClaims): Promise<string | undefined> | undefined {
    return isOfClient(claims) ? undefined : this.#usernameOf(claims.nodeId, claims.subject);
  }

  async #usernameOf(nodeId: string, supervisorId: string): Promise<string | undefined> {
    return (await this.#parts.supervisors.find(nodeId, supervisorId))?.username;
  }

  #principalOf({ tokenClass, claims }: SignedToken): Principal | undefined {
    return principalFromClaims(tokenClass, claims, this.#parts.nowMs());
  }

  async #signed(token: string): Promise<SignedToken | undefined> {
    try {
      return await this.#parts.verifier.verify(token, ['user', 'legacy']);
    } catch (error) {
      if (error instanceof AppError && error.status === 401) return undefined;
      throw error;
    }
  }
}

function membersOf({ client_id, exp, iat, sub, aud, iss, jti }: SignedToken['claims']) {
  return {
    client_id: textOf(client_id),
    exp: numberOf(exp),
    iat: numberOf(iat),
    sub: textOf(sub),
    aud: textOf(aud),
    iss: textOf(iss),
    jti: textOf(jti),
  };
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined;
}

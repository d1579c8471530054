import { type ClientRecord, type Principal, type SignedToken, unlessInvalid } from '../identity/callers.ts';
import type { AccessDirectory } from '../revocation/access-cache.ts';
import type { Supervisors } from '../supervisors/supervisors.service.ts';
import { isOfClient, type RefreshTokens, type Revocations } from './revocations.ts';
import type { TokenAuthenticator } from './token-authenticator.ts';

/** What introspection says of a token that would not be accepted (RFC 7662 section 2.2). */
const INACTIVE = { active: false };

const CLASSES = ['user', 'legacy'] as const;

/** Revokes and introspects tokens for an authenticated client. */
export class TokenManagement {
  readonly #deps;

  constructor(deps: {
    authenticator: TokenAuthenticator;
    directory: AccessDirectory;
    supervisors: Supervisors;
    refreshTokens: RefreshTokens;
    revocations: Revocations;
  }) {
    this.#deps = deps;
  }

  /**
   * Revokes a token of this client (RFC 7009 section 2.1): an access token only; a refresh token with its family or
   * session and all their access tokens. A token of another client, or one that is no longer valid, is ignored.
   */
  async revoke(token: string, client: ClientRecord): Promise<void> {
    const { authenticator, refreshTokens, revocations } = this.#deps;
    const principal = await unlessInvalid(async () =>
      authenticator.principalOf(await authenticator.checkSignature(token, CLASSES)),
    );
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
   * Returns the content of a token of this client's tenant if it would be accepted now; `active: false` for every other
   * token (RFC 7662 section 2.2).
   */
  async introspect(token: string, client: ClientRecord) {
    const { authenticator } = this.#deps;
    const signed = await unlessInvalid(() => authenticator.checkSignature(token, CLASSES));
    if (!signed) return INACTIVE;
    const principal = await unlessInvalid(async () => {
      const claimed = await authenticator.checkClaims(signed);
      // Another tenant's session is not looked up: an error while it cannot be read would reveal that the token is
      // valid.
      if (claimed.nodeId === client.nodeId) await authenticator.checkSession(claimed);
      return claimed;
    });
    if (!principal) return this.#introspectRefresh(token, signed, client);
    return principal.nodeId === client.nodeId ? this.#introspectAccess(signed, principal) : INACTIVE;
  }

  async #introspectAccess(signed: SignedToken, principal: Principal) {
    const { nodeId, tokenUse, subject, permissions } = principal;
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

  /** Introspects a refresh token. The response has no `token_type`, since a refresh token is not a Bearer token. */
  async #introspectRefresh(token: string, signed: SignedToken, { nodeId }: ClientRecord) {
    const { directory, refreshTokens } = this.#deps;
    const { client_id: clientId, scope } = signed.claims;
    const owner = typeof clientId === 'string' ? await directory.client(clientId) : undefined;
    if (owner?.nodeId !== nodeId) return INACTIVE;
    const claims = await refreshTokens.claimsOf(token, owner);
    if (!claims || !(await refreshTokens.isRedeemable(token, claims, owner))) return INACTIVE;
    return {
      active: true,
      scope: textOf(scope),
      username: isOfClient(claims) ? undefined : await this.#usernameOf(claims.nodeId, claims.subject),
      ...membersOf(signed.claims),
      token_use: 'refresh',
    };
  }

  async #usernameOf(nodeId: string, supervisorId: string): Promise<string | undefined> {
    return (await this.#deps.supervisors.find(nodeId, supervisorId))?.username;
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

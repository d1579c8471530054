import type { TokenClass } from '../../platform/config/secrets.ts';
import { InvalidTokenError } from '../identity/invalid-token.ts';
import { type Principal, refuseForgotPassword, type SignedToken } from '../identity/principal.ts';
import type { AccessDirectory } from '../revocation/access-directory.ts';
import type { Sessions } from '../revocation/sessions.ts';
import { principalFromClaims } from './claims.rules.ts';
import type { TokenVerifier } from './token-verifier.ts';

interface AuthenticatorDependencies {
  verifier: Pick<TokenVerifier, 'verify'>;
  directory: Pick<AccessDirectory, 'admits' | 'client'>;
  sessions: Pick<Sessions, 'isLive'>;
  nowMs(): number;
}

/**
 * Authenticates access tokens from any interface (RFC 9068 section 4): first the signature, then the claims with their
 * tenant and client, then the session. Each step is a method and throws an InvalidTokenError with the
 * reason.
 */
export class TokenAuthenticator {
  readonly #deps: AuthenticatorDependencies;
  /**
   * Principals by verified token. The verifier returns the same object for the same token, so that its claims are read
   * once.
   */
  readonly #principals = new WeakMap<SignedToken, Principal>();

  constructor(deps: AuthenticatorDependencies) {
    this.#deps = deps;
  }

  /**
   * Runs all steps for a token of one of the accepted classes, which opens an interface without a list of permissions,
   * and returns its principal.
   * @throws InvalidTokenError when a step refuses the token, or it only serves to set a new password.
   */
  async authenticate(token: string, accepted: readonly TokenClass[]): Promise<Principal> {
    const principal = await this.checkClaims(await this.checkSignature(token, accepted));
    await this.checkSession(principal);
    refuseForgotPassword(principal);
    return principal;
  }

  /**
   * Checks that a token that was valid still is: not expired, its tenant and client admitted, its session live.
   * @throws InvalidTokenError when it is not.
   */
  async check(principal: Principal): Promise<void> {
    await this.checkSession(await this.#admitted(principal));
  }

  /**
   * Checks that a token that was accepted a few minutes ago has not been revoked since; it may have expired. Does not
   * read the session.
   */
  async recheck(principal: Principal): Promise<void> {
    if (!(await this.#deps.directory.admits(principal))) await this.#refuse(principal);
  }

  /** Verifies the signature of a token of one of the accepted classes and returns its claims. */
  checkSignature(token: string, accepted: readonly TokenClass[]): Promise<SignedToken> {
    return this.#deps.verifier.verify(token, accepted);
  }

  /**
   * Returns the principal that the claims name; its tenant and client must exist, and the token must not be revoked.
   */
  async checkClaims(token: SignedToken): Promise<Principal> {
    return this.#admitted(this.principalOf(token));
  }

  /** Returns the principal that the claims name, without checking its tenant and client. */
  principalOf(token: SignedToken): Principal {
    const known = this.#principals.get(token);
    if (known) return known;
    const principal = principalFromClaims(token.tokenClass, token.claims, this.#deps.nowMs());
    this.#principals.set(token, principal);
    return principal;
  }

  /**
   * Checks that the session of a login is live. API and forgot-password tokens have no session.
   */
  async checkSession(principal: Principal): Promise<void> {
    const isLogin = principal.tokenUse === 'login';
    if (isLogin && !(await this.#deps.sessions.isLive(principal))) throw new InvalidTokenError('revoked');
  }

  async #admitted(principal: Principal): Promise<Principal> {
    const { directory, nowMs } = this.#deps;
    if (principal.expiresAtMs !== undefined && principal.expiresAtMs <= nowMs()) throw new InvalidTokenError('expired');
    return (await directory.admits(principal)) ? principal : this.#refuse(principal);
  }

  /**
   * Throws the error for a token that is not admitted: when its client belongs to its tenant, it was valid before and
   * has been revoked; otherwise its tenant is unknown or another client's, or its client is unknown.
   */
  async #refuse({ tokenClass, clientId, nodeId }: Principal): Promise<never> {
    const client = clientId === undefined ? undefined : await this.#deps.directory.client(clientId);
    if (client?.nodeId === nodeId) throw new InvalidTokenError('revoked');
    const isOfNoClient = tokenClass === 'user' && clientId !== undefined && !client;
    throw new InvalidTokenError(isOfNoClient ? 'not_admitted' : 'audience');
  }
}

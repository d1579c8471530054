import { TOKEN_EXPIRED, TOKEN_REVOKED, unauthorized } from '../../errors/app-error.ts';
import type { AccessDirectory } from '../../oauth/access-directory.ts';
import { hasExpired, principalFromClaims } from '../../oauth/claims.rules.ts';
import type { Principal } from '../../oauth/principal.ts';
import type { SignedToken } from '../../oauth/signed-token.ts';
import type { Exchange } from '../exchange.ts';
import type { Stage } from '../stage.ts';

/** Parses the claims: expiry, what kind of token it is, and whether its node and client exist and are active. */
export function claimsStage(directory: AccessDirectory, nowMs: () => number): Stage {
  const known = new WeakMap<SignedToken, Principal>();

  function principalOf(token: SignedToken): Principal | undefined {
    const before = known.get(token);
    if (before) return before.expiresAtMs === undefined || before.expiresAtMs > nowMs() ? before : undefined;
    const principal = principalFromClaims(token.tokenClass, token.claims, nowMs());
    if (principal) known.set(token, principal);
    return principal;
  }

  async function refuse(principal: Principal): Promise<never> {
    throw unauthorized((await directory.isOfItsClient(principal)) ? TOKEN_REVOKED : undefined);
  }

  return function claims(exchange: Exchange): void | Promise<void> {
    if (!exchange.token) return;
    const principal = principalOf(exchange.token);
    if (!principal) throw unauthorized(hasExpired(exchange.token.claims, nowMs()) ? TOKEN_EXPIRED : undefined);
    const admitted = directory.admits(principal);
    if (typeof admitted === 'boolean') {
      if (!admitted) return refuse(principal);
      exchange.principal = principal;
      return;
    }
    return admitted.then((isAdmitted): void | Promise<void> => {
      if (!isAdmitted) return refuse(principal);
      exchange.principal = principal;
    });
  };
}

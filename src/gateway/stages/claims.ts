import { unauthorized } from '../../errors/app-error.ts';
import type { AccessDirectory } from '../../oauth/access-directory.ts';
import { principalFromClaims } from '../../oauth/claims.rules.ts';
import type { Exchange } from '../exchange.ts';
import type { Stage } from '../stage.ts';

/** Parses the claims: expiry, what kind of token it is, and whether its node and client exist and are active. */
export function claimsStage(directory: AccessDirectory, nowMs: () => number): Stage {
  return function claims(exchange: Exchange): void | Promise<void> {
    if (!exchange.token) return;
    const principal = principalFromClaims(exchange.token.tokenClass, exchange.token.claims, nowMs());
    if (!principal) throw unauthorized();
    const admitted = directory.admits(principal);
    if (typeof admitted === 'boolean') {
      if (!admitted) throw unauthorized();
      exchange.principal = principal;
      return;
    }
    return admitted.then((known) => {
      if (!known) throw unauthorized();
      exchange.principal = principal;
    });
  };
}

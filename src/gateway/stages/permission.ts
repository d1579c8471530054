import { forbidden } from '../../errors/app-error.ts';
import type { Principal } from '../../oauth/principal.ts';
import type { Exchange } from '../exchange.ts';

/** The token must hold every permission that the endpoint's registration lists. */
export function permission({ principal, match }: Exchange): void {
  const missing = principal && match ? missingPermissions(principal, match.endpoint.permissions) : [];
  if (missing.length > 0) throw forbidden(missing);
}

/** Gives those of the permissions that a token does not hold. */
export function missingPermissions({ permissions }: Principal, needed: readonly string[]): string[] {
  return needed.filter((name) => !permissions.has(name));
}

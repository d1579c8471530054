import { forbidden } from '../../errors/app-error.ts';
import type { Principal } from '../../oauth/principal.ts';
import type { Exchange } from '../exchange.ts';

/** The token must hold every permission that the endpoint's registration lists. */
export function permission({ principal, match }: Exchange): void {
  if (principal && match && !holdsPermissions(principal, match.endpoint.permissions)) throw forbidden();
}

/** Whether a token holds every one of these permissions. */
export function holdsPermissions({ permissions }: Principal, needed: readonly string[]): boolean {
  return needed.every((name) => permissions.has(name));
}

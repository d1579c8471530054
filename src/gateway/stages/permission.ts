import { forbidden } from '../../errors/app-error.ts';
import type { Exchange } from '../exchange.ts';

/** The token must hold every permission that the endpoint's registration lists. */
export function permission(exchange: Exchange): void {
  if (!exchange.principal || !exchange.match) return;
  const { permissions } = exchange.principal;
  for (const name of exchange.match.endpoint.permissions) {
    if (!permissions.has(name)) {
      throw forbidden(exchange.match.endpoint.permissions.filter((needed) => !permissions.has(needed)));
    }
  }
}

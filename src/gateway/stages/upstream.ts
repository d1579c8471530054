import type { Exchange } from '../exchange.ts';
import type { Services } from '../services.ts';
import type { Stage } from '../stage.ts';

/** Finalises where the request goes: to a service of this process or to an upstream, and who runs the client guards. */
export function upstreamStage(services: Services): Stage {
  return function upstream(exchange: Exchange): void {
    exchange.upstream = services.upstreamOf(exchange);
    exchange.isGuardedElsewhere = services.areGuardsElsewhere(exchange);
  };
}

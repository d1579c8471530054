import { attachExchange, type Exchange } from '../exchange.ts';
import type { Stage } from '../stage.ts';
import type { Upstream } from '../upstream/upstream.ts';

/** Where a request goes once it is through: the services in this process. */
export interface LocalServices {
  handle(exchange: Exchange): void;
}

/** Where it goes when its service is in another process. */
export interface RemoteServices {
  forward(exchange: Exchange, upstream: Upstream): void;
}

interface ProxyParts {
  clientGuards: (exchange: Exchange) => void | Promise<void>;
  local: LocalServices;
  remote: RemoteServices;
}

/** Runs the client guards, which are the backend's first step, then hands the request to its service. */
export function proxyStage({ clientGuards, local, remote }: ProxyParts): Stage {
  function pass(exchange: Exchange): void {
    const { upstream, limitRefusal } = exchange;
    // Only a service of this process looks into the body for what a limit refuses.
    if (upstream && limitRefusal) throw limitRefusal;
    if (upstream) remote.forward(exchange, upstream);
    else local.handle(exchange);
  }

  return function proxy(exchange: Exchange): void | Promise<void> {
    attachExchange(exchange);
    const pending = exchange.isGuardedElsewhere ? undefined : clientGuards(exchange);
    if (pending) return pending.then(() => pass(exchange));
    pass(exchange);
  };
}

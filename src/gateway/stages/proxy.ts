import { attachExchange, type Exchange } from '../exchange.ts';
import type { Stage } from '../stage.ts';

/** Where a request goes once it is through: the services in this process. */
export interface LocalServices {
  handle(exchange: Exchange): void;
}

/** Runs the client guards, which are the backend's first step, then hands the request to its service. */
export function proxyStage(guards: (exchange: Exchange) => void | Promise<void>, services: LocalServices): Stage {
  return function proxy(exchange: Exchange): void | Promise<void> {
    attachExchange(exchange);
    const pending = guards(exchange);
    if (pending) return pending.then(() => services.handle(exchange));
    services.handle(exchange);
  };
}

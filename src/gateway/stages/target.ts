import { invalidRequest, notFound } from '../../errors/app-error.ts';
import type { Exchange } from '../exchange.ts';
import { headFault } from '../head.rules.ts';
import type { Services } from '../services.ts';
import type { Stage } from '../stage.ts';
import { NOT_HTTP } from '../unparsed-head.ts';

/** The service that the caller names; absent or empty: the gateway's own binding. An unknown name is a 404. */
export function targetStage(services: Services): Stage {
  return function target(exchange: Exchange): void {
    const fault = exchange.isBroken ? NOT_HTTP : headFault(exchange.req, exchange.upgrade !== undefined);
    if (fault) {
      // Whoever wrote such a head may mean another end of its body: nothing behind it is taken.
      exchange.res.shouldKeepAlive = false;
      throw invalidRequest([fault]);
    }
    const name = targetServer(exchange);
    if (name !== undefined && !services.isKnown(name)) throw notFound();
  };
}

/** The value of `X-Target-Server`, or undefined where there is none. */
export function targetServer(exchange: Exchange): string | undefined {
  const header = exchange.req.headers['x-target-server'];
  const name = Array.isArray(header) ? header.join(',') : header;
  return name === undefined || name === '' ? undefined : name;
}

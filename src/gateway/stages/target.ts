import { invalidRequest, notFound } from '../../errors/app-error.ts';
import type { Exchange } from '../exchange.ts';
import type { Services } from '../services.ts';
import type { Stage } from '../stage.ts';

/** The service that the caller names; absent or empty: the gateway's own binding. An unknown name is a 404. */
export function targetStage(services: Services): Stage {
  return function target(exchange: Exchange): void {
    const { req } = exchange;
    if (req.headers.host === undefined && req.httpVersion === '1.1') {
      throw invalidRequest([{ path: 'Host', message: 'is required' }]);
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

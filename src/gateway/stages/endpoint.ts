import { notFound, serviceUnavailable } from '../../errors/app-error.ts';
import type { EndpointTable } from '../endpoint-table.ts';
import type { Exchange } from '../exchange.ts';
import { normalTarget } from '../normal-path.ts';
import type { Services } from '../services.ts';
import type { Stage } from '../stage.ts';
import { targetServer } from './target.ts';

const HEALTH = /^\/(v[12]\/)?health$/;

/**
 * Matches method and path to a registered endpoint of the named service; anything else is a 404. A request that could
 * not be recorded is refused here, where it is known whether its sender knows a 503.
 */
export function endpointStage(table: EndpointTable, services: Services): Stage {
  return function endpoint(exchange: Exchange): void {
    const target = normalTarget(exchange.req.url ?? '');
    const match = target && table.match(exchange.req.method ?? '', target.path);
    if (!target || !match) throw exchange.isUnrecordable ? serviceUnavailable() : notFound();
    const service = services.serviceFor(match.endpoint, targetServer(exchange));
    if (service === undefined && match.endpoint.services.length > 0) throw notFound();
    exchange.target = target;
    exchange.match = match;
    exchange.service = service;
    if (exchange.isUnrecordable && !HEALTH.test(target.path)) throw serviceUnavailable();
    // RFC 9112 section 3.2.2: whatever the Host field says.
    if (target.host !== undefined) exchange.req.headers.host = target.host;
    exchange.req.url = target.query === '' ? target.path : `${target.path}?${target.query}`;
  };
}

import type { Exchange } from '../exchange.ts';
import { targetServer } from './target.ts';

/** Finalises the service that the request goes to: the named one, else the endpoint's first. */
export function upstream(exchange: Exchange): void {
  exchange.service = targetServer(exchange) ?? exchange.match?.endpoint.services[0];
}

import { noToken } from '../../errors/app-error.ts';
import type { Exchange } from '../exchange.ts';

/** Marks the request public or private: a private one must carry a bearer token. */
export function visibility(exchange: Exchange): void {
  if (exchange.match?.endpoint.visibility === 'protected' && exchange.req.headers.authorization === undefined) {
    throw noToken();
  }
}

/** Whether the token stages have something to judge: never on a public endpoint, however broken its bearer is. */
export function carriesToken(exchange: Exchange): boolean {
  const shown = exchange.match?.endpoint.visibility;
  return shown === 'protected' || (shown === 'optional' && exchange.req.headers.authorization !== undefined);
}

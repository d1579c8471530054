import express, { type NextFunction, type Request, type Response, type Router } from 'express';
import { serviceUnavailable } from './errors/app-error.ts';
import { errorEnvelope } from './errors/envelope.ts';
import { answerPreflight } from './gateway/cors.ts';
import { type Exchange, exchangeOf } from './gateway/exchange.ts';
import type { LocalServices } from './gateway/stages/proxy.ts';
import type { Log } from './lib/log.ts';
import { refuse } from './rest/refuse.ts';
import { sendJson } from './rest/send.ts';

/** GraphQL, as the gateway hands requests and WebSocket upgrades to it. */
export interface GraphqlListener {
  handle(exchange: Exchange): void;
  upgrade(exchange: Exchange): void;
}

interface AppParts {
  routers: readonly Router[];
  graphql: GraphqlListener;
  log: Log;
}

/** The services of this process, behind the gateway: REST routers on Express, and GraphQL beside them. */
export function localServices({ routers, graphql, log }: AppParts): LocalServices {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.enable('case sensitive routing');
  app.enable('strict routing');
  app.set('query parser', false);
  app.use([...routers]);
  app.use((_req: Request, res: Response) => {
    // The endpoint is registered, its handler is still to come: whatever statuses its senders know, this is no fault.
    const refusal = serviceUnavailable();
    for (const [name, value] of Object.entries(refusal.headers)) res.setHeader(name, value);
    sendJson(res, refusal.status, errorEnvelope(refusal));
  });
  app.use((error: unknown, req: Request, _res: Response, _next: NextFunction) => refuse(exchangeOf(req), error, log));

  function handle(exchange: Exchange): void {
    const { endpoint } = exchange.match ?? {};
    if (endpoint?.path === '/graphql') {
      if (exchange.upgrade) graphql.upgrade(exchange);
      else graphql.handle(exchange);
    } else if (exchange.req.method === 'OPTIONS') answerPreflight(exchange);
    else app(exchange.req, exchange.res);
  }

  return { handle };
}

import { parse } from 'node:querystring';
import express, { type RequestHandler } from 'express';
import type { LocalServices } from '../../gateway/chain.ts';
import { type Exchange, exchangeOf } from '../../gateway/exchange/exchange.ts';
import { errorEnvelope, refusalHeaders, statusOf } from '../../gateway/exchange/refusals.ts';
import { answerPreflight, refuse, sendJson } from '../../gateway/exchange/responses.ts';
import type { ServedRoute } from '../../gateway/exchange/served-route.ts';
import { PathTable, parametersOf } from '../../gateway/routing.ts';
import type { Log } from '../../lib/log.ts';
import { serviceUnavailable } from '../../platform/errors.ts';
import type { DescribedRoute } from '../openapi/operation.ts';

/**
 * The whole declaration of a method and path: its Express handlers, its OpenAPI operation and how the gateway treats its
 * requests. No other file of `src` contains the path. `Services` is the type of the services that its handlers call.
 */
export interface Route<Services> extends DescribedRoute, Omit<ServedRoute, 'methods' | 'run'> {
  /** Returns the handlers that Express runs in order. */
  readonly handlers: (services: Services) => readonly RequestHandler[];
}

/** Declares a route; its services have the type of its handlers' argument. */
export function route<Services>(declared: Route<Services>): Route<Services> {
  return declared;
}

/**
 * Makes the Express application that serves the routes to requests that the gateway has let through. The gateway has
 * found the route of a request; Express runs its handlers. Its settings turn off what the contract does not have: the
 * `ETag` of every response, `X-Powered-By` and 304. `req.query` has every parameter. A request without a route gets 503.
 */
export function restApplication<Services>(
  routes: readonly Route<Services>[],
  services: Services,
  log: Log,
): LocalServices {
  const app = express().disable('etag').disable('x-powered-by');
  app.set('query parser', (query: string) => parse(query, '&', '=', { maxKeys: 0 }));
  // No route but those that do it themselves answers 304.
  Object.defineProperty(app.request, 'fresh', { value: false });
  app.use((req, res, next) => exchangeOf(req).route?.run(req, res, next));
  return {
    routes: new PathTable(routes.map((declared) => served(declared, services))),
    handle(exchange) {
      const { req, res, route: { errorBody } = {} } = exchange;
      // A router reports an error one tick later: a body that arrived with its headers has been read by then, and the
      // connection can be kept.
      const fail = (error?: unknown) =>
        refuse(exchange, error, log, errorBody && ((refusal) => errorBody(refusal, req)));
      if (req.method === 'OPTIONS') answerPreflight(exchange);
      else if (exchange.route) app(req as express.Request, res as express.Response, fail);
      else answerUnserved(exchange);
    },
  };
}

/** Returns a route as the gateway finds it. One of GET serves HEAD, for which Node sends no body. */
function served<Services>({ handlers, method, ...treatment }: Route<Services>, services: Services): ServedRoute {
  const router = express.Router({ mergeParams: true }).use(...handlers(services));
  return {
    ...treatment,
    methods: method === 'GET' ? ['GET', 'HEAD'] : [method],
    run(req, res, next) {
      req.params = parametersOf(treatment.path, exchangeOf(req).target?.path ?? '');
      router(req, res, next);
    },
  };
}

/** Answers 503, even if the endpoint's statuses are closed: only the operator can correct that it has no route. */
function answerUnserved({ res }: Exchange): void {
  const refusal = serviceUnavailable();
  for (const [name, value] of Object.entries(refusalHeaders(refusal))) res.setHeader(name, value);
  sendJson(res, statusOf(refusal), errorEnvelope(refusal));
}

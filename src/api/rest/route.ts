import type { IncomingMessage } from 'node:http';
import { parse } from 'node:querystring';
import express, { type RequestHandler } from 'express';
import type { LocalServices } from '../../gateway/chain.ts';
import type { EndpointFlags } from '../../gateway/endpoints/endpoint-flags.ts';
import type { Exchange } from '../../gateway/exchange/exchange.ts';
import { type ErrorEnvelope, errorEnvelope, refusalHeaders, statusOf } from '../../gateway/exchange/refusals.ts';
import { answerPreflight, refuse, sendJson } from '../../gateway/exchange/responses.ts';
import type { Log } from '../../lib/log.ts';
import { type Refusal, serviceUnavailable } from '../../platform/errors.ts';
import type { DescribedRoute } from '../openapi/operation.ts';

/**
 * The whole declaration of a method and path: an Express route, its OpenAPI operation and its flags. No other file of
 * `src` contains the path. `Services` is the type of the services that its handlers call.
 */
export interface Route<Services> extends DescribedRoute {
  /** How the gateway treats requests to the path with any method; undefined for the usual treatment. */
  readonly flags?: EndpointFlags;
  /** Returns the body for an error of a handler; by default the error envelope. */
  readonly errorBody?: (error: Refusal, req: IncomingMessage) => ErrorEnvelope;
  /** Returns the handlers that Express runs in order. */
  readonly handlers: (services: Services) => readonly RequestHandler[];
}

/** Declares a route; its services have the type of its handlers' argument. */
export function route<Services>(declared: Route<Services>): Route<Services> {
  return declared;
}

const VERBS = { GET: 'get', HEAD: 'head', POST: 'post', PUT: 'put', DELETE: 'delete' } as const;

/**
 * Makes the Express application that serves the routes to requests that the gateway has let through. Its settings turn
 * off what the contract does not have: the `ETag` of every response, `X-Powered-By`, 304, and paths in another case or
 * with a trailing slash. `req.query` has every parameter. A request without a route gets 503.
 */
export function restApplication<Services>(
  routes: readonly Route<Services>[],
  services: Services,
  log: Log,
): LocalServices {
  const app = express().disable('etag').disable('x-powered-by');
  app.enable('case sensitive routing').enable('strict routing');
  app.set('query parser', (query: string) => parse(query, '&', '=', { maxKeys: 0 }));
  // No route but those that do it themselves answers 304.
  Object.defineProperty(app.request, 'fresh', { value: false });
  const errorBodies = new Map<unknown, Route<Services>['errorBody']>();
  for (const { method, path, handlers, errorBody } of routes) {
    const place = app.route(path.replace(/\{(\w+)\}/g, ':$1').replace(/\*+$/, '{*rest}'));
    place[VERBS[method]](...handlers(services));
    errorBodies.set(place, errorBody);
  }
  return {
    handle(exchange) {
      const { req, res } = exchange;
      if (req.method === 'OPTIONS') {
        answerPreflight(exchange);
        return;
      }
      app(req as express.Request, res as express.Response, (error?: unknown) => {
        const errorBody = 'route' in req ? errorBodies.get(req.route) : undefined;
        if (error === undefined) answerUnserved(exchange);
        // One tick later, a body that arrived with its headers has been read, and the connection can be kept.
        else setImmediate(() => refuse(exchange, error, log, errorBody && ((refusal) => errorBody(refusal, req))));
      });
    },
  };
}

/** Answers 503, even if the endpoint's statuses are closed: only the operator can correct that it has no route. */
function answerUnserved({ res }: Exchange): void {
  const refusal = serviceUnavailable();
  for (const [name, value] of Object.entries(refusalHeaders(refusal))) res.setHeader(name, value);
  sendJson(res, statusOf(refusal), errorEnvelope(refusal));
}

/**
 * Checks whether a request with a method and a path pattern of `gateway.yaml` can reach a route: the pattern equals or
 * overlaps with the route's own, regardless of parameter names. As in Express, a GET route serves HEAD.
 */
export function reaches(method: string, pattern: string, { method: served, path }: DescribedRoute): boolean {
  const isServed = served === method || (method === 'HEAD' && served === 'GET');
  return isServed && overlap(pattern.split('/'), path.split('/'));
}

/** Checks whether some path matches both patterns, which are given as segments. */
function overlap([one, ...ones]: readonly string[], [other, ...others]: readonly string[]): boolean {
  if (one === undefined || other === undefined) return one === other;
  if (one === '**' || other === '**') return true;
  return (one === other || isVariable(one) || isVariable(other)) && overlap(ones, others);
}

function isVariable(segment: string): boolean {
  return segment === '*' || segment.startsWith('{');
}

import type { Request, Response, Router } from 'express';
import { type Route, reaches } from '../faces/rest/route.ts';
import type { RouteServices } from '../faces/rest/routes.ts';
import type { LocalServices } from '../gateway/chain.ts';
import { answerPreflight } from '../gateway/cors.ts';
import type { Exchange } from '../gateway/exchange/exchange.ts';
import { refuse, sendJson } from '../gateway/exchange/responses.ts';
import { type Endpoint, type GatewayConfig, isRemote } from '../gateway/table/gateway-config.ts';
import type { Log } from '../lib/log.ts';
import { errorEnvelope, serviceUnavailable } from '../platform/errors.ts';

interface ServedRoute {
  route: Route<RouteServices>;
  router: Router;
}

/** Serves requests that the gateway has let through by the routes that their endpoint can reach, which are looked up once for each endpoint. */
export function localServices(
  routes: readonly Route<RouteServices>[],
  services: RouteServices,
  log: Log,
): LocalServices {
  const served = routes.map((route): ServedRoute => ({ route, router: route.router(services) }));
  const known = new WeakMap<Endpoint, ReadonlyMap<string, readonly ServedRoute[]>>();

  function reachedBy(endpoint: Endpoint): ReadonlyMap<string, readonly ServedRoute[]> {
    return new Map(
      endpoint.methods.map((method) => [method, served.filter(({ route }) => reaches(method, endpoint.path, route))]),
    );
  }

  function handle(exchange: Exchange): void {
    const { endpoint } = exchange.found;
    const { method = '' } = exchange.req;
    if (!endpoint) throw new Error('a request without an endpoint came through');
    if (method === 'OPTIONS') {
      answerPreflight(exchange);
      return;
    }
    let reached = known.get(endpoint);
    if (!reached) {
      reached = reachedBy(endpoint);
      known.set(endpoint, reached);
    }
    dispatch(exchange, reached.get(method) ?? [], log);
  }

  return { handle };
}

/** Hands a request to the first route that takes it: there is one, unless the endpoint is a pattern of several routes. */
function dispatch(exchange: Exchange, [served, ...others]: readonly ServedRoute[], log: Log): void {
  if (!served) {
    answerUnserved(exchange);
    return;
  }
  const { req, res } = exchange;
  const { errorBody } = served.route;
  // Express calls back a tick after a handler has thrown: a body that came with its head has been read by then, and the
  // connection is kept.
  served.router(req as Request, res as Response, (error?: unknown) => {
    if (error === undefined) dispatch(exchange, others, log);
    else refuse(exchange, error, log, errorBody && ((refusal) => errorBody(refusal, req)));
  });
}

/** Answers 503, also where the endpoint's statuses are closed: that it has no route is the operator's to correct. */
function answerUnserved({ res }: Exchange): void {
  const refusal = serviceUnavailable();
  for (const [name, value] of Object.entries(refusal.headers)) res.setHeader(name, value);
  sendJson(res, refusal.status, errorEnvelope(refusal));
}

/**
 * Lists the methods and paths, as `GET /v1/thing`, that a table lets through to services of this process and that have no
 * route: they answer 503.
 */
export function unservedEndpoints(
  { endpoints, services }: GatewayConfig,
  routes: readonly Route<RouteServices>[],
): string[] {
  const isHere = (endpoint: Endpoint) =>
    endpoint.upstream === undefined &&
    (endpoint.services.length === 0 || endpoint.services.some((name) => !isRemote(services[name])));
  return endpoints
    .filter(isHere)
    .flatMap(({ methods, path }) =>
      methods
        .filter((method) => method !== 'OPTIONS' && !routes.some((route) => reaches(method, path, route)))
        .map((method) => `${method} ${path}`),
    );
}

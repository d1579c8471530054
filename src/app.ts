import type { Request, Response, Router } from 'express';
import { serviceUnavailable } from './errors/app-error.ts';
import { errorEnvelope } from './errors/envelope.ts';
import { answerPreflight } from './gateway/cors.ts';
import type { Exchange } from './gateway/exchange.ts';
import type { Endpoint } from './gateway/gateway-config.ts';
import type { LocalServices } from './gateway/stages/proxy.ts';
import type { Log } from './lib/log.ts';
import { refuse } from './rest/refuse.ts';
import { sendJson } from './rest/send.ts';

/** GraphQL, as the gateway hands requests and WebSocket upgrades to it. */
export interface GraphqlListener {
  handle(exchange: Exchange): void;
  upgrade(exchange: Exchange): void;
}

/** MCP, as the gateway hands requests to it. */
export interface McpListener {
  handle(exchange: Exchange): void;
}

/** One server: below its path it is the same. */
const MCP_PATHS: ReadonlySet<string> = new Set(['/v2/mcp', '/v2/mcp/**']);

interface AppParts {
  /** Their handlers use Node's request and response, and `params`: the helpers of an Express application are not there. */
  routers: readonly Router[];
  graphql: GraphqlListener;
  mcp: McpListener;
  log: Log;
}

/** The services of this process, behind the gateway: REST routers of Express, and GraphQL and MCP beside them. */
export function localServices({ routers, graphql, mcp, log }: AppParts): LocalServices {
  const byPath = routersByPath(routers);
  const known = new WeakMap<Endpoint, readonly Router[]>();

  /** The router of an endpoint's path; all of them for a pattern that is nobody's own. */
  function routersOf(endpoint: Endpoint): readonly Router[] {
    const found = known.get(endpoint) ?? byPath.get(shapeOf(endpoint.path, /\{[^}]*\}/g)) ?? routers;
    known.set(endpoint, found);
    return found;
  }

  function handle(exchange: Exchange): void {
    const { endpoint } = exchange.match ?? {};
    if (!endpoint) throw new Error('a request without an endpoint came through');
    if (endpoint.path === '/graphql') {
      if (exchange.upgrade) graphql.upgrade(exchange);
      else graphql.handle(exchange);
    } else if (MCP_PATHS.has(endpoint.path)) mcp.handle(exchange);
    else if (exchange.req.method === 'OPTIONS') answerPreflight(exchange);
    else route(exchange, routersOf(endpoint), log);
  }

  return { handle };
}

/** Tries routers in turn; what none of them takes is registered, and its handler is still to come. */
function route(exchange: Exchange, routers: readonly Router[], log: Log): void {
  const [router, ...rest] = routers;
  if (!router) {
    answerUnserved(exchange);
    return;
  }
  router(exchange.req as Request, exchange.res as Response, (error?: unknown) => {
    if (error !== undefined) refuse(exchange, error, log);
    else route(exchange, rest, log);
  });
}

/** Whatever statuses its senders know, this is no fault. */
function answerUnserved({ res }: Exchange): void {
  const refusal = serviceUnavailable();
  for (const [name, value] of Object.entries(refusal.headers)) res.setHeader(name, value);
  sendJson(res, refusal.status, errorEnvelope(refusal));
}

/** Who serves a path: asking every router in turn would cost more than all the rest of the way. */
function routersByPath(routers: readonly Router[]): ReadonlyMap<string, readonly Router[]> {
  const byPath = new Map<string, Router[]>();
  for (const router of routers) {
    for (const { route } of router.stack) {
      if (route === undefined) continue;
      const shape = shapeOf(route.path, /:\w+/g);
      const serving = byPath.get(shape) ?? [];
      if (!serving.includes(router)) byPath.set(shape, [...serving, router]);
    }
  }
  return byPath;
}

/** A path whose parameters have no names. */
function shapeOf(path: string, parameters: RegExp): string {
  return path.replace(parameters, '{}');
}

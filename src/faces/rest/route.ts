import type { IncomingMessage } from 'node:http';
import { type RequestHandler, Router } from 'express';
import type { EndpointFlags } from '../../gateway/table/endpoint-flags.ts';
import type { AppError, ErrorEnvelope } from '../../platform/errors.ts';
import type { DescribedRoute } from '../openapi/operation.ts';

interface RouteOptions extends DescribedRoute {
  /** How the gateway treats requests of the path, whatever their method; absent: as usual. */
  readonly flags?: EndpointFlags;
  /** Makes the body of a handler's refusal; by default the error envelope. */
  readonly errorBody?: (error: AppError, req: IncomingMessage) => ErrorEnvelope;
}

/** Everything that is declared of a method and a path: no other file of `src` names the path. */
interface RouteDeclaration<Services> extends RouteOptions {
  /**
   * Gives the handlers that Express runs in turn. They have Node's request and response, and `params`; the helpers of an
   * Express application are not there.
   */
  handlers: (services: Services) => readonly RequestHandler[];
}

/** A route; `Services` is what its handlers call. */
export interface Route<Services> extends RouteOptions {
  /** Makes the router that serves the route. */
  readonly router: (services: Services) => Router;
}

const VERBS = { GET: 'get', HEAD: 'head', POST: 'post', PUT: 'put', DELETE: 'delete' } as const;

/** Declares a route: an Express route together with its OpenAPI operation and its flags. */
export function route<Services>({ handlers, ...described }: RouteDeclaration<Services>): Route<Services> {
  const path = described.path.replace(/\{(\w+)\}/g, ':$1').replace(/\*+$/, '{*rest}');
  return {
    ...described,
    router: (services) =>
      Router({ caseSensitive: true, strict: true })[VERBS[described.method]](path, ...handlers(services)),
  };
}

/**
 * Tells whether requests of a method to a path pattern of `gateway.yaml` can reach a route: its own pattern, with any names
 * of parameters, or one that overlaps with it. As in Express, a route of GET serves HEAD.
 */
export function reaches(method: string, pattern: string, { method: served, path }: DescribedRoute): boolean {
  const isServed = served === method || (method === 'HEAD' && served === 'GET');
  return isServed && overlap(pattern.split('/'), path.split('/'));
}

/** Tells whether some path matches both patterns, which are given as segments. */
function overlap([one, ...ones]: readonly string[], [other, ...others]: readonly string[]): boolean {
  if (one === undefined || other === undefined) return one === other;
  if (one === '**' || other === '**') return true;
  return (one === other || isVariable(one) || isVariable(other)) && overlap(ones, others);
}

function isVariable(segment: string): boolean {
  return segment === '*' || segment.startsWith('{');
}

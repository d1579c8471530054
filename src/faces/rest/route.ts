import type { IncomingMessage } from 'node:http';
import { type RequestHandler, Router } from 'express';
import type { EndpointFlags } from '../../gateway/table/endpoint-flags.ts';
import type { AppError, ErrorEnvelope } from '../../platform/errors.ts';
import type { DescribedRoute } from '../openapi/operation.ts';

interface RouteOptions extends DescribedRoute {
  /** How the gateway treats requests to the path, whatever their method; undefined for the usual treatment. */
  readonly flags?: EndpointFlags;
  /** Returns the body for an error of a handler; by default the error envelope. */
  readonly errorBody?: (error: AppError, req: IncomingMessage) => ErrorEnvelope;
}

/** The whole declaration of a method and path; no other file of `src` contains the path. */
interface RouteDeclaration<Services> extends RouteOptions {
  /**
   * Returns the handlers that Express runs in order. They have Node's request and response, and `params`, but none of
   * the helpers of an Express application.
   */
  handlers: (services: Services) => readonly RequestHandler[];
}

/** A route; `Services` is the type of the services that its handlers call. */
export interface Route<Services> extends RouteOptions {
  /** Creates the router that serves the route. */
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
 * Checks whether a request with a method and a path pattern of `gateway.yaml` can reach a route: the pattern equals or
 * overlaps with the route's own, whatever the names of parameters. As in Express, a GET route serves HEAD.
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

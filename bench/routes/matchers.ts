import findMyWay, { type HTTPMethod } from 'find-my-way';
import { match } from 'path-to-regexp';
import { endpointOf } from '../../src/gateway/endpoints/gateway-config.ts';
import { PathTable } from '../../src/gateway/routing.ts';
import type { WrittenEndpoint } from './endpoints.ts';

export type MatcherName = 'table' | 'find-my-way' | 'path-to-regexp';

/** Finds what a method and path belong to; undefined where that is nothing. */
export type Matcher = (method: string, path: string) => unknown;

/** What prepares the endpoints, apart from what compiles them: only the latter is timed. */
type Prepare = (endpoints: readonly WrittenEndpoint[]) => () => Matcher;

export const MATCHERS: Record<MatcherName, Prepare> = {
  table: (endpoints) => {
    const prepared = endpoints.map(endpointOf);
    return () => {
      const table = new PathTable(prepared);
      return (method, path) => table.match(method, path);
    };
  },
  'find-my-way': (endpoints) => () => {
    const router = findMyWay({ maxParamLength: 500 });
    for (const { methods, path } of endpoints) router.on(methods, withColons(path), () => undefined);
    return (method, path) => router.find(method as HTTPMethod, path) ?? undefined;
  },
  'path-to-regexp': (endpoints) => () => {
    const layers = endpoints.map(({ methods, path }) => ({
      methods: new Set<string>(methods),
      match: match(withColons(path), { sensitive: true, trailing: false }),
    }));
    // As the router of Express goes: one layer after another, the path before the method.
    return (method, path) => {
      for (const layer of layers) {
        const matched = layer.match(path);
        if (matched !== false && layer.methods.has(method)) return matched;
      }
      return undefined;
    };
  },
};

function withColons(path: string): string {
  return path.replaceAll(/\{([a-z_]+)\}/g, ':$1');
}

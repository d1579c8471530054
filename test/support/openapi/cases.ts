import type { OpenApiStand, Options } from './stand.ts';

export type Values = Readonly<Record<string, string>>;

/** One call of a route: what it is, its status, and what it sends, to which path. */
export type Try = readonly [
  name: string,
  status: number,
  options?: (stand: OpenApiStand) => Options,
  values?: (stand: OpenApiStand) => Values,
];

/** The calls of a route, and the values of its path's parameters where a call has none of its own. */
export interface Tries {
  method: string;
  path: string;
  values?: (stand: OpenApiStand) => Values;
  tries: readonly Try[];
}

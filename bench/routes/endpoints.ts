/** An endpoint as `gateway.yaml` writes it. */
export interface WrittenEndpoint {
  methods: ('GET' | 'POST')[];
  path: string;
  services: string[];
}

/** What is looked up. */
export interface Asked {
  method: string;
  path: string;
}

export type Kind = 'literal' | 'parameters' | 'miss' | 'deep';

/** The shapes of an area's resource: two of them literal, two with parameters. */
const SHAPES = [
  { methods: ['GET', 'POST'], path: '' },
  { methods: ['GET'], path: '/summary' },
  { methods: ['GET'], path: '/{id}' },
  { methods: ['POST'], path: '/{id}/parts/{part_id}' },
] as const;

const AREAS = 10;
const SAMPLES = 512;
/** Odd, so that it goes through all samples. */
const STRIDE = 197;
const UUID = '0194e2a0-7c1b-7d4e-9f3a-5b6c7d8e9f01';

/** As many endpoints as asked for, of ten areas with resources of four shapes each. */
export function manyEndpoints(count: number): WrittenEndpoint[] {
  return Array.from({ length: count }, (_, index) => {
    const { methods, path } = SHAPES[index % SHAPES.length] ?? SHAPES[0];
    return {
      methods: [...methods],
      path: `${pathOf(Math.floor(index / SHAPES.length))}${path}`,
      services: ['accounts'],
    };
  });
}

/** Requests of each kind, evenly over a table of so many endpoints, and out of order. */
export function requestsOf(count: number): Record<Kind, Asked[]> {
  const resources = Math.floor(count / SHAPES.length);
  const ask = (one: Asked, other: Asked) =>
    Array.from({ length: SAMPLES }, (_, sample) => {
      const resource = Math.floor((((sample * STRIDE) % SAMPLES) * resources) / SAMPLES);
      const { method, path } = sample % 2 === 0 ? one : other;
      return { method, path: `${pathOf(resource)}${path}` };
    });
  const part = { method: 'POST', path: `/${UUID}/parts/17` };
  const miss = { method: 'GET', path: `/${UUID}/pieces` };
  const deep = { method: 'POST', path: `${part.path}${'/a'.repeat(2_000)}` };
  return {
    literal: ask({ method: 'POST', path: '' }, { method: 'GET', path: '/summary' }),
    parameters: ask({ method: 'GET', path: `/${UUID}` }, part),
    miss: ask(miss, { ...part, method: 'GET' }),
    deep: ask(deep, deep),
  };
}

function pathOf(resource: number): string {
  return `/v1/area-${resource % AREAS}/resource-${resource}`;
}

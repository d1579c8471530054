import type { FlagsByPath } from './endpoints/endpoint-flags.ts';
import { type Endpoint, type GatewayConfig, isRemote, METHODS } from './endpoints/gateway-config.ts';
import type { Upstream } from './endpoints/upstream.ts';
import type { Findings } from './exchange/exchange.ts';

interface TableNode {
  literal: Map<string, TableNode>;
  parameter: TableNode | undefined;
  here: Map<string, Endpoint>;
  /** Endpoints whose path ends in `*` here, by method: they match exactly one more segment. */
  one: Map<string, Endpoint>;
  /** Endpoints whose path ends in `**` here, by method: they match any rest. */
  rest: Map<string, Endpoint>;
}

/**
 * Matches requests to endpoints in a tree of path segments, so that a match costs the length of the path, not of the
 * table. Gives each endpoint the flags of its route.
 */
export class EndpointTable {
  readonly #root: TableNode = emptyNode();

  constructor(endpoints: readonly Endpoint[], flagsByPath: FlagsByPath = {}) {
    const byShape = new Map(Object.entries(flagsByPath).map(([path, flags]) => [shapeOf(path), flags]));
    for (const written of endpoints) {
      const flags = byShape.get(shapeOf(written.path));
      const endpoint = flags ? { ...written, flags } : written;
      for (const method of endpoint.methods) this.#add(method, endpoint);
    }
  }

  /**
   * Returns the endpoint of a method and a normalised path; undefined when none matches. A literal segment takes
   * precedence over a parameter, and that over a wildcard.
   */
  match(method: string, path: string): Endpoint | undefined {
    return find(this.#root, method, path, path.indexOf('/') + 1);
  }

  /** Returns why no endpoint matches a path: no endpoint has it, or its endpoints have other methods. */
  absenceOf(path: string): string {
    const methods = METHODS.filter((method) => (this.match(method, path)?.path ?? '**') !== '**');
    return methods.length === 0 ? 'no endpoint has this path' : `the path has only ${methods.join(', ')}`;
  }

  #add(method: string, endpoint: Endpoint): void {
    if (endpoint.path === '**') {
      this.#root.rest.set(method, endpoint);
      return;
    }
    let node = this.#root;
    for (const segment of endpoint.path.split('/').slice(1)) {
      if (segment === '*') return void node.one.set(method, endpoint);
      if (segment === '**') return void node.rest.set(method, endpoint);
      node = child(node, segment);
    }
    node.here.set(method, endpoint);
  }
}

/** Returns a path pattern without the names of its parameters. */
function shapeOf(path: string): string {
  return path.replace(/\{[^}]*\}/g, '{}');
}

function emptyNode(): TableNode {
  return { literal: new Map(), parameter: undefined, here: new Map(), one: new Map(), rest: new Map() };
}

function child(node: TableNode, segment: string): TableNode {
  if (segment.startsWith('{')) {
    node.parameter ??= emptyNode();
    return node.parameter;
  }
  const existing = node.literal.get(segment);
  if (existing) return existing;
  const created = emptyNode();
  node.literal.set(segment, created);
  return created;
}

/** Finds the endpoint for the rest of a path. `at` is the index of the next segment; 0 at the end of the path. */
function find(node: TableNode, method: string, path: string, at: number): Endpoint | undefined {
  if (at === 0) return node.here.get(method);
  const slash = path.indexOf('/', at);
  const segment = slash < 0 ? path.slice(at) : path.slice(at, slash);
  const literal = node.literal.get(segment);
  const byLiteral = literal && find(literal, method, path, slash + 1);
  if (byLiteral) return byLiteral;
  if (node.parameter && segment !== '') {
    const byParameter = find(node.parameter, method, path, slash + 1);
    if (byParameter) return byParameter;
  }
  if (slash < 0) {
    const one = node.one.get(method);
    if (one) return one;
  }
  return node.rest.get(method);
}

interface UpstreamsByName {
  of(name: string): Upstream | undefined;
}

/** Finds the service and the upstream of a request in one endpoint table. Requests that have begun keep that table. */
export class Services {
  readonly #services: GatewayConfig['services'];
  readonly #binding: readonly string[] | undefined;
  readonly #upstreams: ReadonlyMap<string, Upstream | undefined>;

  constructor(
    { services, binding, discovers }: Pick<GatewayConfig, 'services' | 'binding' | 'discovers'>,
    upstreams: UpstreamsByName,
  ) {
    this.#services = services;
    this.#binding = binding;
    const names = [...Object.keys(services), ...(discovers ? [discovers.name] : [])];
    this.#upstreams = new Map(names.map((name) => [name, upstreams.of(name)]));
  }

  /** Checks whether a service name is valid in `X-Target-Server`. */
  isKnown(name: string): boolean {
    return Object.hasOwn(this.#services, name);
  }

  /**
   * Returns the service of an endpoint for a request: the service named by the caller if the endpoint lists it, or
   * without a name the gateway's own service. Returns undefined when there is none, and for endpoints of the
   * gateway itself.
   */
  serviceFor(endpoint: Endpoint, named: string | undefined): string | undefined {
    const { services } = endpoint;
    if (named !== undefined) return services.includes(named) ? named : undefined;
    if (this.#binding) return services.find((name) => this.#binding?.includes(name));
    return services.find((name) => !isRemote(this.#services[name])) ?? services[0];
  }

  /** Returns the upstream of a request whose service has been found; undefined when this process handles it. */
  upstreamOf({ endpoint, service }: Pick<Findings, 'endpoint' | 'service'>): Upstream | undefined {
    const name = endpoint?.upstream ?? service;
    return name === undefined ? undefined : this.#upstreams.get(name);
  }

  /** Checks whether another process runs the client guards: the upstream, or a gateway in front of this one. */
  areGuardsElsewhere({ upstream, service }: Findings, isPeerTrusted: boolean): boolean {
    if (upstream) return upstream.service.guards === 'upstream';
    const guards = service === undefined ? undefined : this.#services[service]?.guards;
    return guards === 'front' && isPeerTrusted;
  }
}

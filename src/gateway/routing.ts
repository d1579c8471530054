import type { Findings } from './exchange/exchange.ts';
import type { Upstream } from './remote/upstream.ts';
import type { FlagsByPath } from './table/endpoint-flags.ts';
import { type Endpoint, type GatewayConfig, isRemote } from './table/gateway-config.ts';

interface TableNode {
  literal: Map<string, TableNode>;
  parameter: TableNode | undefined;
  here: Map<string, Endpoint>;
  /** Endpoints that end in `*`: exactly one more segment. */
  one: Map<string, Endpoint>;
  /** Endpoints that end in `**`: any rest. */
  rest: Map<string, Endpoint>;
}

/**
 * Matches requests to endpoints in a tree of path segments: a match costs the length of the path, not of the table.
 * Flags are those of the routes behind the endpoints.
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
   * Returns the endpoint of a method and a normalised path. A literal segment goes before a parameter, and that before
   * a rest.
   */
  match(method: string, path: string): Endpoint | undefined {
    return find(this.#root, method, path, path.indexOf('/') + 1);
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

/** Returns a path whose parameters have no names. */
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

/** Matches the rest of a path. `at` is where its next segment begins; 0 at the end. */
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

/** Finds the service of a request, and its upstream, by one endpoint table: requests that have begun keep theirs. */
export class Services {
  readonly #services: GatewayConfig['services'];
  readonly #binding: readonly string[] | undefined;
  readonly #upstreams: ReadonlyMap<string, Upstream | undefined>;
  /** The service of each endpoint for callers who name none. */
  readonly #unnamed = new WeakMap<Endpoint, string | undefined>();

  constructor(
    { services, binding, discovers }: Pick<GatewayConfig, 'services' | 'binding' | 'discovers'>,
    upstreams: UpstreamsByName,
  ) {
    this.#services = services;
    this.#binding = binding;
    const names = [...Object.keys(services), ...(discovers ? [discovers.name] : [])];
    this.#upstreams = new Map(names.map((name) => [name, upstreams.of(name)]));
  }

  /** Returns whether a name may stand in `X-Target-Server`. */
  isKnown(name: string): boolean {
    return Object.hasOwn(this.#services, name);
  }

  /**
   * Returns the service of an endpoint for a request: the named one if the endpoint lists it, else the one of the
   * gateway's binding. Undefined where there is none, and for an endpoint without services, which the gateway serves
   * itself.
   */
  serviceFor(endpoint: Endpoint, named: string | undefined): string | undefined {
    if (named !== undefined) return endpoint.services.includes(named) ? named : undefined;
    if (!this.#unnamed.has(endpoint)) this.#unnamed.set(endpoint, this.#boundOf(endpoint));
    return this.#unnamed.get(endpoint);
  }

  /** Returns the upstream of a request whose service is known; undefined for this process. */
  upstreamOf({ endpoint, service }: Pick<Findings, 'endpoint' | 'service'>): Upstream | undefined {
    const name = endpoint?.upstream ?? service;
    return name === undefined ? undefined : this.#upstreams.get(name);
  }

  /** Returns whether another process runs the client guards: the upstream, or a gateway in front of this one. */
  areGuardsElsewhere({ upstream, service }: Findings, isPeerTrusted: boolean): boolean {
    if (upstream) return upstream.service.guards === 'upstream';
    const guards = service === undefined ? undefined : this.#services[service]?.guards;
    return guards === 'front' && isPeerTrusted;
  }

  #boundOf({ services }: Endpoint): string | undefined {
    if (this.#binding) return services.find((name) => this.#binding?.includes(name));
    return services.find((name) => !isRemote(this.#services[name])) ?? services[0];
  }
}

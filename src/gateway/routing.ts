import { type Endpoint, type GatewayConfig, METHODS } from './endpoints/gateway-config.ts';
import type { Upstream } from './endpoints/upstream.ts';
import type { RequestState } from './exchange/exchange.ts';

interface TableNode<Entry> {
  /** The nodes below, by a literal segment or one of `PARAMETER`, `ONE` and `REST`. */
  children: Map<string, TableNode<Entry>>;
  /** The entries whose path ends here, by method. */
  entries: Map<string, Entry>;
}

// No segment of a path has a slash.
const PARAMETER = '/{}';
/** Matches the last segment of a path. */
const ONE = '/*';
/** Matches any rest of a path. */
const REST = '/**';

/**
 * Matches requests to endpoints, or to routes, in a tree of path segments, so that a match costs the length of the path,
 * not of the table.
 */
export class PathTable<Entry extends { readonly methods: readonly string[]; readonly path: string }> {
  readonly #root: TableNode<Entry> = { children: new Map(), entries: new Map() };

  constructor(entries: readonly Entry[]) {
    for (const entry of entries) for (const method of entry.methods) this.#add(method, entry);
  }

  /**
   * Returns the entry of a method and a normalised path; undefined when none matches. A literal segment takes
   * precedence over a parameter, and that over a wildcard.
   */
  match(method: string, path: string): Entry | undefined {
    return find(this.#root, method, path, path.indexOf('/') + 1);
  }

  /** Returns why no endpoint matches a path: no endpoint has it, or its endpoints have other methods. */
  absenceOf(path: string): string {
    const methods = METHODS.filter((method) => (this.match(method, path)?.path ?? '**') !== '**');
    return methods.length === 0 ? 'no endpoint has this path' : `the path has only ${methods.join(', ')}`;
  }

  #add(method: string, entry: Entry): void {
    let node = this.#root;
    for (const segment of entry.path.replace(/^\//, '').split('/')) {
      const key = segment.startsWith('{') ? PARAMETER : segment.replace(/^\*/, '/*');
      node = node.children.getOrInsertComputed(key, () => ({ children: new Map(), entries: new Map() }));
    }
    node.entries.set(method, entry);
  }
}

/**
 * Returns the parameters of a path that a pattern matches, decoded, by their names; what a wildcard matches is `rest`.
 */
export function parametersOf(pattern: string, path: string): Record<string, string> {
  const segments = path.split('/').map(decodeURIComponent);
  return Object.fromEntries(
    pattern.split('/').flatMap((part, at) => {
      if (part.startsWith('*')) return [['rest', segments.slice(at).join('/')]];
      return part.startsWith('{') ? [[part.slice(1, -1), segments[at] ?? '']] : [];
    }),
  );
}

/** Finds the entry for the rest of a path. `at` is the index of the next segment; 0 at the end of the path. */
function find<Entry>(node: TableNode<Entry> | undefined, method: string, path: string, at: number): Entry | undefined {
  if (!node || at === 0) return node?.entries.get(method);
  const { children } = node;
  const slash = path.indexOf('/', at);
  const segment = slash < 0 ? path.slice(at) : path.slice(at, slash);
  return (
    find(children.get(segment), method, path, slash + 1) ??
    (segment === '' ? undefined : find(children.get(PARAMETER), method, path, slash + 1)) ??
    (slash < 0 ? children.get(ONE)?.entries.get(method) : undefined) ??
    children.get(REST)?.entries.get(method)
  );
}

/** Finds the service and the upstream of a request in one endpoint table. Requests that have begun keep that table. */
export class Services {
  readonly #services: GatewayConfig['services'];
  readonly #binding: readonly string[] | undefined;
  readonly #upstreams: ReadonlyMap<string, Upstream | undefined>;

  constructor(
    { services, binding, discovers }: Pick<GatewayConfig, 'services' | 'binding' | 'discovers'>,
    upstreams: { of(name: string): Upstream | undefined },
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
  serviceFor({ services }: Endpoint, requestedName: string | undefined): string | undefined {
    if (requestedName !== undefined) return services.includes(requestedName) ? requestedName : undefined;
    return this.#binding
      ? services.find((name) => this.#binding?.includes(name))
      : (services.find((name) => !this.#upstreams.get(name)) ?? services[0]);
  }

  /** Returns the upstream of a request whose service has been found; undefined when this process handles it. */
  upstreamOf({ endpoint, service }: Pick<RequestState, 'endpoint' | 'service'>): Upstream | undefined {
    const name = endpoint?.upstream ?? service;
    return name === undefined ? undefined : this.#upstreams.get(name);
  }

  /** Checks whether another process runs the client guards: the upstream, or a gateway in front of this one. */
  areGuardsElsewhere({ upstream, service }: RequestState, isPeerTrusted: boolean): boolean {
    if (upstream) return upstream.service.guards === 'upstream';
    const guards = service === undefined ? undefined : this.#services[service]?.guards;
    return guards === 'front' && isPeerTrusted;
  }
}

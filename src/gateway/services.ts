import type { Findings } from './exchange/exchange.ts';
import type { Upstream } from './remote/upstream.ts';
import { type Endpoint, type GatewayConfig, isRemote } from './table/gateway-config.ts';

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

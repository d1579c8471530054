import type { Exchange } from './exchange.ts';
import type { Endpoint, GatewayConfig } from './gateway-config.ts';
import { isRemote } from './service-config.ts';
import type { Upstream } from './upstream/upstream.ts';

interface UpstreamsByName {
  of(name: string): Upstream | undefined;
}

/** Which service a request goes to, and where that is, by one table: later changes of the upstreams do not reach it. */
export class Services {
  readonly #services: GatewayConfig['services'];
  readonly #binding: readonly string[] | undefined;
  readonly #upstreams: ReadonlyMap<string, Upstream | undefined>;
  /** The service of each endpoint for those who name none. */
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

  /** Whether a name is one that `X-Target-Server` may have. */
  isKnown(name: string): boolean {
    return Object.hasOwn(this.#services, name);
  }

  /**
   * The service that an endpoint's request goes to: the named one if the endpoint is of it, else the gateway's own
   * binding. Undefined where there is none; an endpoint without services is the gateway's own, whatever is named.
   */
  serviceFor(endpoint: Endpoint, named: string | undefined): string | undefined {
    if (named !== undefined) return endpoint.services.includes(named) ? named : undefined;
    if (!this.#unnamed.has(endpoint)) this.#unnamed.set(endpoint, this.#boundOf(endpoint));
    return this.#unnamed.get(endpoint);
  }

  /** The upstream of a request whose service is known; undefined for this process. */
  upstreamOf({ match, service }: Exchange): Upstream | undefined {
    const name = match?.endpoint.upstream ?? service;
    return name === undefined ? undefined : this.#upstreams.get(name);
  }

  /** Whether the client guards are not for this gateway to run: the upstream does, or a gateway in front has. */
  areGuardsElsewhere({ upstream, service, isPeerTrusted }: Exchange): boolean {
    if (upstream) return upstream.service.guards === 'upstream';
    const guards = service === undefined ? undefined : this.#services[service]?.guards;
    return guards === 'front' && isPeerTrusted;
  }

  #boundOf({ services }: Endpoint): string | undefined {
    if (this.#binding) return services.find((name) => this.#binding?.includes(name));
    return services.find((name) => !isRemote(this.#services[name])) ?? services[0];
  }
}

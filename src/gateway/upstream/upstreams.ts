import type { Log } from '../../lib/log.ts';
import { refuse } from '../../rest/refuse.ts';
import type { Exchange } from '../exchange.ts';
import type { GatewayConfig } from '../gateway-config.ts';
import { isRemote } from '../service-config.ts';
import { Forwarding } from './forwarding.ts';
import { Upstream } from './upstream.ts';

interface UpstreamsParts {
  log: Log;
  nowMs(): number;
}

/** The remote services of a gateway, by name. Nothing is connected before the first request. */
export class Upstreams {
  readonly #log: Log;
  readonly #byName = new Map<string, Upstream>();

  constructor({ services, discovers }: Pick<GatewayConfig, 'services' | 'discovers'>, { log, nowMs }: UpstreamsParts) {
    this.#log = log;
    const remote = Object.entries({ ...services, ...(discovers ? { [discovers.name]: discovers.service } : {}) });
    for (const [name, service] of remote) {
      if (!isRemote(service)) continue;
      const onCircuit = ({ circuit }: Upstream) =>
        log.warn({ service: name, circuit: circuit.kind }, 'the circuit of a service has turned');
      this.#byName.set(name, new Upstream({ name, service, nowMs, onCircuit }));
    }
  }

  get all(): readonly Upstream[] {
    return [...this.#byName.values()];
  }

  /** The upstream of a name; undefined for a service of this process. */
  of(name: string): Upstream | undefined {
    return this.#byName.get(name);
  }

  /** Sends a request to an upstream and its answer to the client; whatever happens is answered. */
  forward(exchange: Exchange, upstream: Upstream): void {
    new Forwarding(exchange, upstream, (ended, refusal) => refuse(ended, refusal, this.#log)).start();
  }

  /** Ends event streams and WebSockets, which no client would end by itself. */
  stopStreams(): void {
    for (const upstream of this.#byName.values()) upstream.stopStreams();
  }

  /** Closes every connection. */
  async close(): Promise<void> {
    await Promise.all(this.all.map((upstream) => upstream.close()));
  }
}

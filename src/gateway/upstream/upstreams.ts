import { isDeepStrictEqual } from 'node:util';
import type { Log } from '../../lib/log.ts';
import { refuse } from '../../rest/refuse.ts';
import type { Exchange } from '../exchange.ts';
import type { GatewayConfig } from '../gateway-config.ts';
import { isRemote, type RemoteService } from '../service-config.ts';
import { Forwarding, type Refuse } from './forwarding.ts';
import { Upstream } from './upstream.ts';
import { UpstreamCalls } from './upstream-call.ts';

interface UpstreamsParts {
  log: Log;
  nowMs(): number;
  /** What measures and traces the calls. */
  calls?: UpstreamCalls;
}

type Remote = Pick<GatewayConfig, 'services' | 'discovers'>;

/** The remote services of a gateway, by name. Nothing is connected before the first request. */
export class Upstreams {
  readonly #parts: UpstreamsParts;
  readonly #calls: UpstreamCalls;
  /** Those of earlier tables that still have requests. */
  readonly #retired = new Set<Upstream>();
  #byName: ReadonlyMap<string, Upstream> = new Map();

  constructor(config: Remote, parts: UpstreamsParts) {
    this.#parts = parts;
    this.#calls = parts.calls ?? new UpstreamCalls();
    this.replace(config);
  }

  /** Those of the table in force. */
  get all(): readonly Upstream[] {
    return [...this.#byName.values()];
  }

  /** Those of earlier tables whose last requests go on. */
  get retired(): readonly Upstream[] {
    return [...this.#retired];
  }

  /** The upstream of a name; undefined for a service of this process. */
  of(name: string): Upstream | undefined {
    return this.#byName.get(name);
  }

  /**
   * Takes the remote services of another table. One that is written as before stays, with its connections, queue and
   * circuit; the others are retired, and a service that has changed goes on counting where it was.
   */
  replace({ services, discovers }: Remote): void {
    const before = this.#byName;
    const remote = Object.entries({ ...services, ...(discovers ? { [discovers.name]: discovers.service } : {}) });
    this.#byName = new Map(
      remote.flatMap(([name, service]) => (isRemote(service) ? [[name, this.#upstream(name, service)]] : [])),
    );
    for (const [name, upstream] of before) if (this.of(name) !== upstream) this.#retire(upstream);
  }

  /** Sends a request to an upstream and its answer to the client; whatever happens is answered. */
  forward(exchange: Exchange, upstream: Upstream): void {
    const refused: Refuse = (ended, refusal) => refuse(ended, refusal, this.#parts.log);
    new Forwarding({ exchange, upstream, calls: this.#calls, refuse: refused }).start();
    // It began under an older table.
    if (upstream.isRetired) this.#retire(upstream);
  }

  /** Ends event streams and WebSockets, which no client would end by itself. */
  stopStreams(): void {
    for (const upstream of [...this.all, ...this.#retired]) upstream.stopStreams();
  }

  /** Closes every connection. */
  async close(): Promise<void> {
    await Promise.all([...this.all, ...this.#retired].map((upstream) => upstream.close()));
  }

  #retire(upstream: Upstream): void {
    this.#retired.add(upstream);
    upstream.retire();
  }

  /** The upstream of a service: the one that there is, if it is written as before. */
  #upstream(name: string, service: RemoteService): Upstream {
    const before = this.#byName.get(name);
    if (before && isDeepStrictEqual(before.service, service)) return before;
    const { log, nowMs } = this.#parts;
    return new Upstream({
      name,
      service,
      nowMs,
      ...(before ? { counts: before.counts } : {}),
      onCircuit: ({ circuit }) =>
        log.warn({ service: name, circuit: circuit.kind }, 'the circuit of a service has turned'),
      onDrained: (upstream) => this.#retired.delete(upstream),
    });
  }
}

import { isDeepStrictEqual } from 'node:util';
import type { Metric } from 'prom-client';
import type { AccessWatch } from '../../access/revocation/access-watch.ts';
import type { Log } from '../../lib/log.ts';
import { counters, gauges } from '../../lib/meters.ts';
import { type GatewayConfig, isRemote, type RemoteService } from '../endpoints/gateway-config.ts';
import { Upstream } from '../endpoints/upstream.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { Forwarding } from './forwarding.ts';
import type { UpstreamCalls } from './upstream-call.ts';

type Remote = Pick<GatewayConfig, 'services' | 'discovers'>;

/** The upstreams of a gateway, by service name. Opens no connection before the first request. */
export class Upstreams {
  readonly #deps;
  /** The upstreams of earlier endpoint tables that still have requests. */
  readonly #retired = new Set<Upstream>();
  #byName: ReadonlyMap<string, Upstream> = new Map();

  constructor(
    config: Remote,
    deps: {
      log: Log;
      nowMs(): number;
      /** Reports when the token of a request that lasts ends. */
      watch: Pick<AccessWatch, 'watch'>;
      /** The URL at which clients reach the gateway; known once it listens. */
      publicUrl: { readonly value: string };
      /** Measures and traces the calls of upstreams. */
      calls: UpstreamCalls;
    },
  ) {
    this.#deps = deps;
    this.replace(config);
  }

  /** The upstreams of the current endpoint table. */
  get all(): readonly Upstream[] {
    return [...this.#byName.values()];
  }

  /** The upstreams of earlier endpoint tables that still have requests. */
  get retired(): readonly Upstream[] {
    return [...this.#retired];
  }

  /** Returns the upstream of a service; undefined when the service is local. */
  of(name: string): Upstream | undefined {
    return this.#byName.get(name);
  }

  /**
   * Replaces the upstreams by the upstreams of another endpoint table. An unchanged service keeps its connections,
   * queue and circuit breaker; removed and changed ones are retired, and a changed one keeps its counts.
   */
  replace({ services, discovers }: Remote): void {
    const before = this.#byName;
    const remote = Object.entries({ ...services, ...(discovers ? { [discovers.name]: discovers.service } : {}) });
    this.#byName = new Map(
      remote.flatMap(([name, service]) => (isRemote(service) ? [[name, this.#upstream(name, service)]] : [])),
    );
    for (const [name, upstream] of before) if (this.of(name) !== upstream) this.#retire(upstream);
  }

  /** Forwards a request to an upstream and its response to the client. Every failure gets an error response. */
  forward(exchange: Exchange, upstream: Upstream): void {
    const { calls, watch, log, publicUrl } = this.#deps;
    new Forwarding({ exchange, upstream, calls, watch, log, publicUrl: publicUrl.value }).start();
    // The request began under an older endpoint table: its upstream counts as retired until the request ends.
    if (upstream.isRetired) this.#retire(upstream);
  }

  /** Closes event streams and WebSockets, which would not end otherwise. */
  stopStreams(): void {
    for (const upstream of [...this.all, ...this.#retired]) upstream.stopStreams();
  }

  /** Closes all connections to upstreams. */
  async close(): Promise<void> {
    await Promise.all([...this.all, ...this.#retired].map((upstream) => upstream.close()));
  }

  #retire(upstream: Upstream): void {
    this.#retired.add(upstream);
    upstream.retire();
  }

  /** Returns the existing upstream of a service if its settings are unchanged, otherwise a new one. */
  #upstream(name: string, service: RemoteService): Upstream {
    const before = this.#byName.get(name);
    if (before && isDeepStrictEqual(before.service, service)) return before;
    const { log, nowMs } = this.#deps;
    return new Upstream({
      name,
      service,
      nowMs,
      ...(before ? { counts: before.counts } : {}),
      onCircuit: ({ circuit }) =>
        log.warn({ service: name, circuit: circuit.kind }, 'circuit breaker of an upstream service changed state'),
      onDrained: (upstream) => this.#retired.delete(upstream),
    });
  }
}

/**
 * Creates the metrics of upstreams. Their values are collected on demand, so that requests pay nothing. Requests still
 * in progress at a removed or changed service are counted under its name.
 */
export function upstreamMetrics(upstreams: Upstreams): Metric[] {
  return [
    counters({
      name: 'portcullis_upstream_requests_total',
      help: 'Requests to upstream services, by outcome (`invalid`: the response was malformed, over its limits or incomplete); a request sent twice also counts as retried.',
      labelNames: ['service', 'outcome'],
      read: () =>
        upstreams.all.flatMap(({ name: service, counts: { timedOut, ...otherCounts } }) =>
          Object.entries({ ...otherCounts, timed_out: timedOut }).map(([outcome, count]) => [
            { service, outcome },
            count,
          ]),
        ),
    }),
    gauges({
      name: 'portcullis_upstream_requests',
      help: 'Requests to upstream services in progress or queued, and open WebSockets.',
      labelNames: ['service', 'state'],
      read: () =>
        [...upstreams.all, ...upstreams.retired].flatMap(({ name: service, requests, sockets }) => [
          [{ service, state: 'going' }, requests.held()],
          [{ service, state: 'waiting' }, requests.waiting()],
          [{ service, state: 'websocket' }, sockets.held()],
        ]),
    }),
    gauges({
      name: 'portcullis_upstream_circuit_closed',
      help: '1 if requests are sent to the upstream service, 0 if its circuit breaker is open.',
      labelNames: ['service'],
      read: () => upstreams.all.map(({ name: service, circuit }) => [{ service }, Number(circuit.kind === 'closed')]),
    }),
  ];
}

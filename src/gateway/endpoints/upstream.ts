import type { Pool } from 'undici';
import { Semaphore } from '../../lib/semaphore.ts';
import { newPool } from '../../platform/http-agent.ts';
import { type Admission, admit, type Circuit, CLOSED, type Outcome, settle } from './breaker.rules.ts';
import type { RemoteService } from './gateway-config.ts';

/** How long connecting may take, in ms; the timeout of the endpoint includes it. */
const CONNECT_TIMEOUT_MS = 5_000;
/** The most bytes of the names and values in the head of a response. */
const MAX_HEAD_BYTES = 65_536;

/** The numbers of requests to an upstream since the process started, by outcome. */
export interface UpstreamCounts {
  answered: number;
  /** Requests without a response: the upstream could not be reached, or the connection broke. */
  failed: number;
  /** Requests whose response was malformed, over its limits or incomplete. */
  invalid: number;
  timedOut: number;
  /** Requests that were refused: the body was too long, the circuit breaker was open, or the queue was full. */
  refused: number;
  /** Requests that their clients aborted. */
  left: number;
  /** Requests that were aborted: the client stopped reading, the process stops, or the token of a long one expired. */
  cut: number;
  /** Requests that were sent a second time; each is also counted under its outcome. */
  retried: number;
}

const NO_REQUESTS: UpstreamCounts = {
  ...{ answered: 0, failed: 0, invalid: 0, timedOut: 0 },
  ...{ refused: 0, left: 0, cut: 0, retried: 0 },
};

/** An event stream or WebSocket, which lasts as long as its client likes. */
export interface LongStream {
  /** Closes the stream because the process stops. */
  stop(): void;
}

/**
 * A remote service with its own connection pool, queue and circuit breaker, so that its failures affect no other
 * service.
 */
export class Upstream {
  readonly name: string;
  readonly service: RemoteService;
  readonly at: URL;
  /** The path of the service's URL, put before the path of each request. */
  readonly prefix: string;
  /** The permits of requests and of WebSockets, by tenant: one could not give borrowed ones back while a body trickles. */
  readonly requests: Semaphore;
  readonly sockets: Semaphore;
  readonly streams = new Set<LongStream>();
  readonly counts: UpstreamCounts;
  readonly #deps;
  circuit: Circuit = CLOSED;
  #pool: Pool | undefined;
  /** Whether the current endpoint table no longer contains this upstream. */
  isRetired = false;

  constructor(deps: {
    name: string;
    service: RemoteService;
    nowMs(): number;
    /** The counts of the upstream that this one replaces. */
    counts?: UpstreamCounts;
    /** Called when the circuit breaker opens or closes. */
    onCircuit(upstream: Upstream): void;
    /** Called when the upstream is retired and has no requests left. */
    onDrained(upstream: Upstream): void;
  }) {
    const { service } = deps;
    this.#deps = deps;
    this.name = deps.name;
    this.service = service;
    this.at = new URL(service.at);
    this.prefix = this.at.pathname === '/' ? '' : this.at.pathname;
    this.counts = deps.counts ?? { ...NO_REQUESTS };
    this.requests = new Semaphore({ permits: service.connections, maxWaiting: service.queue, share: 'free' });
    this.sockets = new Semaphore({ permits: service.websockets, share: 'free' });
    this.#pool = this.#newPool();
  }

  /** The connection pool, which opens no connection before the first request. */
  get pool(): Pool {
    this.#pool ??= this.#newPool();
    return this.#pool;
  }

  /**
   * Marks the upstream as removed from the endpoint table. Its earlier requests proceed, however late; its connections
   * are closed whenever it has no requests.
   */
  retire(): void {
    this.isRetired = true;
    this.#closeDrained();
  }

  /** Releases a permit that `requests` or `sockets` has granted to a key. */
  release(semaphore: Semaphore, key: string): void {
    semaphore.release(key);
    this.#closeDrained();
  }

  /**
   * Asks the circuit breaker whether a request of a client may be sent now. The caller must call `settle` once for each
   * request admitted.
   */
  admit(client: string): Admission {
    const admission = admit(this.circuit, client, this.#deps.nowMs());
    if (admission.isAdmitted) this.#moveTo(admission.circuit);
    return admission;
  }

  /** Returns how long the circuit breaker still refuses a client's requests, in ms; undefined when it accepts them. */
  retryAfterMs(client: string): number | undefined {
    if (this.circuit.kind === 'closed') return undefined;
    const admission = admit(this.circuit, client, this.#deps.nowMs());
    return admission.isAdmitted ? undefined : admission.retryAfterMs;
  }

  /** Gives the circuit breaker the outcome of an admitted request. If it opens, waiting requests are refused. */
  settle(result: { outcome: Outcome; client: string; isTrial: boolean }): void {
    const { failures, open_ms: openMs } = this.service.breaker;
    this.#moveTo(settle(this.circuit, result, this.#deps.nowMs(), { failures, openMs }));
  }

  /** Closes event streams and WebSockets. */
  stopStreams(): void {
    for (const stream of this.streams) stream.stop();
  }

  async close(): Promise<void> {
    await this.pool.destroy();
  }

  #newPool(): Pool {
    return newPool(this.at.origin, {
      connections: this.service.connections,
      pipelining: 1,
      // HTTP/2 is off: requests would share a connection, and WebSockets work differently.
      connect: { timeout: CONNECT_TIMEOUT_MS },
      allowH2: false,
      maxHeaderSize: MAX_HEAD_BYTES,
      // The timeout of the endpoint applies instead; it includes the time in the queue and connecting.
      headersTimeout: 0,
      bodyTimeout: this.service.idle_timeout_ms,
    });
  }

  #closeDrained(): void {
    if (!this.isRetired || this.requests.held() > 0 || this.sockets.held() > 0) return;
    const pool = this.#pool;
    this.#pool = undefined;
    // The pool is idle, and an error while closing its connections does not matter.
    pool?.close().catch(() => undefined);
    this.#deps.onDrained(this);
  }

  #moveTo(circuit: Circuit): void {
    const { kind } = this.circuit;
    this.circuit = circuit;
    if (circuit.kind === kind) return;
    this.#deps.onCircuit(this);
    if (circuit.kind === 'open') this.requests.refuseAll();
  }
}

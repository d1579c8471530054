import { Pool } from 'undici';
import { Semaphore } from '../../lib/semaphore.ts';
import type { RemoteService } from '../table/gateway-config.ts';
import { type Admission, admit, type Circuit, CLOSED, type Outcome, settle } from './breaker.rules.ts';

/** How long connecting may take; the timeout of the endpoint includes it. */
const CONNECT_TIMEOUT_MS = 5_000;

interface UpstreamParts {
  name: string;
  service: RemoteService;
  nowMs(): number;
  /** The counts of the upstream that it replaces. */
  counts?: UpstreamCounts;
  /** Called when the circuit breaker opens or closes. */
  onCircuit(upstream: Upstream): void;
  /** Called when it is retired and its last request has ended. */
  onDrained(upstream: Upstream): void;
}

/** Counts requests by outcome, since the start. */
export interface UpstreamCounts {
  answered: number;
  failed: number;
  timedOut: number;
  /** Refused because the circuit was open or the queue full. */
  refused: number;
  /** Aborted by their clients. */
  left: number;
  /** Responses that had begun and that their client did not read to the end. */
  cut: number;
  /** Sent a second time; the request is also counted under its outcome. */
  retried: number;
}

/** Something that lasts as long as its client likes: an event stream, a WebSocket. */
export interface LongStream {
  /** Ends it because the process stops. */
  stop(): void;
}

/** A remote service with its own pool of connections, queue and circuit breaker: its failures affect no other one. */
export class Upstream {
  readonly name: string;
  readonly service: RemoteService;
  /** Prefixed to the path of each request. */
  readonly prefix: string;
  readonly requests: Semaphore;
  readonly sockets: Semaphore;
  readonly streams = new Set<LongStream>();
  readonly counts: UpstreamCounts;
  readonly #parts: UpstreamParts;
  readonly #origin: string;
  #circuit: Circuit = CLOSED;
  #pool: Pool | undefined;
  #isRetired = false;

  constructor(parts: UpstreamParts) {
    const { service } = parts;
    const { origin, pathname } = new URL(service.at);
    this.#parts = parts;
    this.name = parts.name;
    this.service = service;
    this.prefix = pathname === '/' ? '' : pathname;
    this.counts = parts.counts ?? { answered: 0, failed: 0, timedOut: 0, refused: 0, left: 0, cut: 0, retried: 0 };
    this.requests = new Semaphore({ permits: service.connections, maxWaiting: service.queue, mayBorrow: true });
    this.sockets = new Semaphore({ permits: service.websockets, mayBorrow: true });
    this.#origin = origin;
  }

  /** The pool; no connection is opened before the first request. */
  get pool(): Pool {
    this.#pool ??= new Pool(this.#origin, {
      connections: this.service.connections,
      pipelining: 1,
      // Over HTTP/2 requests would share a connection, and WebSockets work differently.
      connect: { timeout: CONNECT_TIMEOUT_MS },
      allowH2: false,
      // The timeout of the endpoint counts from the arrival of the request, queue and connecting included.
      headersTimeout: 0,
      bodyTimeout: this.service.idle_timeout_ms,
    });
    return this.#pool;
  }

  /** Whether it is in no endpoint table any more. */
  get isRetired(): boolean {
    return this.#isRetired;
  }

  /**
   * Retires it: no endpoint table has it any more. Requests that began under an older one proceed, however late; its
   * connections are closed whenever there are none.
   */
  retire(): void {
    this.#isRetired = true;
    this.#closeDrained();
  }

  /** Gives back a permit of `requests` or of `sockets`. */
  release(semaphore: Semaphore): void {
    semaphore.release(this.name);
    this.#closeDrained();
  }

  get circuit(): Circuit {
    return this.#circuit;
  }

  /** Asks the circuit breaker whether a request may be sent now. One that is admitted must be settled once. */
  admit(): Admission {
    const admission = admit(this.#circuit, this.#parts.nowMs());
    if (admission.isAdmitted) this.#turn(admission.circuit);
    return admission;
  }

  /** How long the circuit breaker refuses requests, in milliseconds; undefined where it does not. */
  get retryAfterMs(): number | undefined {
    if (this.#circuit.kind === 'closed') return undefined;
    const admission = admit(this.#circuit, this.#parts.nowMs());
    return admission.isAdmitted ? undefined : admission.retryAfterMs;
  }

  /** Gives the circuit breaker the outcome of an admitted request. If it opens, those that wait are refused. */
  settle(outcome: Outcome, isTrial: boolean): void {
    const { failures, open_ms: openMs } = this.service.breaker;
    this.#turn(settle(this.#circuit, { outcome, isTrial }, this.#parts.nowMs(), { failures, openMs }));
  }

  /** Ends event streams and WebSockets. */
  stopStreams(): void {
    for (const stream of this.streams) stream.stop();
  }

  async close(): Promise<void> {
    await this.pool.destroy();
  }

  #closeDrained(): void {
    if (!this.#isRetired || this.requests.held() > 0 || this.sockets.held() > 0) return;
    const pool = this.#pool;
    this.#pool = undefined;
    // It is idle, and losing its connections is the purpose.
    pool?.close().catch(() => undefined);
    this.#parts.onDrained(this);
  }

  #turn(circuit: Circuit): void {
    const { kind } = this.#circuit;
    this.#circuit = circuit;
    if (circuit.kind === kind) return;
    this.#parts.onCircuit(this);
    if (circuit.kind === 'open') this.requests.refuseAll();
  }
}

import { Pool } from 'undici';
import type { RemoteService } from '../service-config.ts';
import { type Admission, admit, type Circuit, CLOSED, type Outcome, settle } from './breaker.rules.ts';
import { Turns } from './turns.ts';

/** How long a connection may take; the endpoint's own time goes on meanwhile. */
const CONNECT_TIMEOUT_MS = 5_000;

interface UpstreamParts {
  name: string;
  service: RemoteService;
  nowMs(): number;
  /** What has been counted under its name before. */
  counts?: UpstreamCounts;
  /** The circuit has changed its kind. */
  onCircuit(upstream: Upstream): void;
  /** It is retired, and its last request has ended. */
  onDrained(upstream: Upstream): void;
}

/** What has been answered how, since the start. */
export interface UpstreamCounts {
  answered: number;
  failed: number;
  timedOut: number;
  /** Refused because the circuit was open, or the queue full. */
  refused: number;
  /** Left by their clients. */
  left: number;
  /** Answers that had begun and could not be finished by their reader. */
  cut: number;
  /** Sent a second time; the request is counted under its outcome, too. */
  retried: number;
}

/** Something that goes on for as long as its client likes: an event stream, a WebSocket. */
export interface LongStream {
  /** Ends it: the process stops. */
  stop(): void;
}

/** A remote service: one bounded pool of connections, its queue and its circuit. What befalls it touches no other. */
export class Upstream {
  readonly name: string;
  readonly service: RemoteService;
  /** Stands before the path of each request. */
  readonly prefix: string;
  readonly requests: Turns;
  readonly sockets: Turns;
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
    const onIdle = () => this.#closeDrained();
    this.requests = new Turns({ atOnce: service.connections, waiting: service.queue }, onIdle);
    this.sockets = new Turns({ atOnce: service.websockets, waiting: 0 }, onIdle);
    this.#origin = origin;
  }

  /** Its connections; none is opened before the first request. */
  get pool(): Pool {
    this.#pool ??= new Pool(this.#origin, {
      connections: this.service.connections,
      pipelining: 1,
      // Over HTTP/2 requests would share a connection, and WebSockets need another way.
      connect: { timeout: CONNECT_TIMEOUT_MS },
      allowH2: false,
      // Its own time counts from the arrival, with the queue and the connection in it.
      headersTimeout: 0,
      bodyTimeout: this.service.idle_timeout_ms,
    });
    return this.#pool;
  }

  /** Whether no table has it any more. */
  get isRetired(): boolean {
    return this.#isRetired;
  }

  /**
   * No table has it any more. Requests that began under an older one end as ever, however late they come; its
   * connections close whenever there is none.
   */
  retire(): void {
    this.#isRetired = true;
    this.#closeDrained();
  }

  get circuit(): Circuit {
    return this.#circuit;
  }

  /** Whether a request may be sent now; one that is admitted must be settled once. */
  admit(): Admission {
    const admission = admit(this.#circuit, this.#parts.nowMs());
    if (admission.isAdmitted) this.#turn(admission.circuit);
    return admission;
  }

  /** How long a request would have to wait for the circuit, or undefined where it need not. */
  get retryAfterMs(): number | undefined {
    if (this.#circuit.kind === 'closed') return undefined;
    const admission = admit(this.#circuit, this.#parts.nowMs());
    return admission.isAdmitted ? undefined : admission.retryAfterMs;
  }

  /** Hears how an admitted request ended. Those who wait are sent away when the circuit opens. */
  settle(outcome: Outcome, isTrial: boolean): void {
    const { failures, open_ms: openMs } = this.service.breaker;
    this.#turn(settle(this.#circuit, { outcome, isTrial }, this.#parts.nowMs(), { failures, openMs }));
  }

  /** Ends what would not end by itself. */
  stopStreams(): void {
    for (const stream of this.streams) stream.stop();
  }

  async close(): Promise<void> {
    await this.pool.destroy();
  }

  #closeDrained(): void {
    if (!this.#isRetired || this.requests.going > 0 || this.sockets.going > 0) return;
    const pool = this.#pool;
    this.#pool = undefined;
    // Nothing goes on in it, and connections that are lost now are what is wanted.
    pool?.close().catch(() => undefined);
    this.#parts.onDrained(this);
  }

  #turn(circuit: Circuit): void {
    const { kind } = this.#circuit;
    this.#circuit = circuit;
    if (circuit.kind === kind) return;
    this.#parts.onCircuit(this);
    if (circuit.kind === 'open') this.requests.dismissAll();
  }
}

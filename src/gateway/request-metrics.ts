import { Counter, Gauge, type Metric } from 'prom-client';
import { BoundHistogram, type Durations } from '../lib/bound-histogram.ts';
import type { Exchange } from './exchange.ts';
import type { Endpoint } from './gateway-config.ts';

/** What a client is counted under that has left before its answer (as in the audit record). */
const CLIENT_CLOSED_REQUEST = 499;

/** Methods as the conventions name them; whoever writes another one makes no series of his own. */
const METHODS: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'CONNECT',
  'TRACE',
]);
const OTHER_METHOD = '_OTHER';
const MAX_STATUS = 1_000;

type Label = 'http_request_method' | 'http_route' | 'http_response_status_code';

/** The status that a request has ended with. */
export function endStatusOf({ res }: Exchange, aborted: boolean): number {
  return aborted && !res.headersSent ? CLIENT_CLOSED_REQUEST : res.statusCode;
}

/** A method as the conventions name it. */
export function methodOf(method: string | undefined): string {
  return method !== undefined && METHODS.has(method) ? method : OTHER_METHOD;
}

/**
 * What an operator sees of the requests of this listener, by the pattern of their endpoint: never by a path, so that the
 * series are as many as the table's lines. Event streams and WebSockets are counted apart: how long their clients stay says
 * nothing of how fast the service is.
 */
export class RequestMetrics {
  readonly metrics: readonly Metric[];
  readonly #durations = new BoundHistogram<Label>({
    name: 'http_server_request_duration_seconds',
    help: 'How long requests took, from their first byte to the last of the answer, by method, endpoint and status.',
    labelNames: ['http_request_method', 'http_route', 'http_response_status_code'],
  });
  readonly #streams = new Counter<'http_route' | 'kind'>({
    name: 'portcullis_streams_ended_total',
    help: 'Event streams and WebSockets that have ended, by endpoint.',
    labelNames: ['http_route', 'kind'],
    registers: [],
  });
  /** The series of an endpoint, by method and status. */
  readonly #ofEndpoint = new WeakMap<Endpoint, Map<string, Map<number, Durations>>>();
  readonly #unmatched = new Map<string, Map<number, Durations>>();
  #active = 0;

  constructor() {
    const activeOf = () => this.#active;
    const active = new Gauge({
      name: 'http_server_active_requests',
      help: 'Requests that are being answered, event streams and WebSockets included.',
      registers: [],
      collect() {
        this.set(activeOf());
      },
    });
    this.metrics = [this.#durations, active, this.#streams];
  }

  /** A request begins; `ended` is called once for it. */
  begun(): void {
    this.#active += 1;
  }

  ended(exchange: Exchange, aborted: boolean): void {
    this.#active -= 1;
    const { match, req, res, upgrade } = exchange;
    const stream = upgrade && res.statusCode === 101 ? 'websocket' : isEventStream(exchange) ? 'sse' : undefined;
    if (stream) {
      this.#streams.inc({ http_route: match?.endpoint.path ?? '', kind: stream });
      return;
    }
    const seconds = (performance.now() - exchange.startedTick) / 1_000;
    this.#series(match?.endpoint, req.method, endStatusOf(exchange, aborted)).observe(seconds);
  }

  /** What was no HTTP has been answered. */
  unparsed(status: number): void {
    this.#series(undefined, undefined, status).observe(0);
  }

  #series(endpoint: Endpoint | undefined, given: string | undefined, status: number): Durations {
    const method = methodOf(given);
    const byMethod = this.#byMethod(endpoint);
    let byStatus = byMethod.get(method);
    if (!byStatus) {
      byStatus = new Map();
      byMethod.set(method, byStatus);
    }
    const code = status < MAX_STATUS ? status : 0;
    const known = byStatus.get(code);
    if (known) return known;
    const bound = this.#durations.bind({
      http_request_method: method,
      http_route: endpoint?.path ?? '',
      http_response_status_code: String(code),
    });
    byStatus.set(code, bound);
    return bound;
  }

  #byMethod(endpoint: Endpoint | undefined): Map<string, Map<number, Durations>> {
    if (!endpoint) return this.#unmatched;
    const known = this.#ofEndpoint.get(endpoint);
    if (known) return known;
    const created = new Map<string, Map<number, Durations>>();
    this.#ofEndpoint.set(endpoint, created);
    return created;
  }
}

/** Whether the answer is an event stream: written as such, or passed on from an upstream. */
function isEventStream({ res }: Exchange): boolean {
  const type = res.getHeader('content-type');
  return typeof type === 'string' && type.startsWith('text/event-stream');
}

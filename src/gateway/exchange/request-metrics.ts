import { Counter, type Metric } from 'prom-client';
import { durations, gauge } from '../../lib/meters.ts';
import type { Tracer } from '../../lib/tracing.ts';
import type { Exchange } from './exchange.ts';

const CLIENT_CLOSED_REQUEST = 499;

/** The methods of the OpenTelemetry semantic conventions; all others share one series. */
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

/** Returns the status with which a request ends: 499 when its client left before the response began. */
export function endStatusOf({ res }: Exchange, aborted: boolean): number {
  return aborted && !res.headersSent ? CLIENT_CLOSED_REQUEST : res.statusCode;
}

/** Returns a method as the OpenTelemetry semantic conventions name it, `_OTHER` for unknown ones. */
export function methodOf(method: string | undefined): string {
  return method !== undefined && METHODS.has(method) ? method : OTHER_METHOD;
}

/**
 * Measures the requests of this listener by endpoint pattern, never by path, so that the number of series is bounded.
 * Counts event streams and WebSockets separately, because their durations say nothing about the speed of the service.
 */
export class RequestMetrics {
  readonly #durations = durations<'http_request_method' | 'http_route' | 'http_response_status_code'>({
    name: 'http_server_request_duration_seconds',
    help: 'Request duration from the first byte received to the last byte sent, by method, endpoint and status.',
    labelNames: ['http_request_method', 'http_route', 'http_response_status_code'],
  });
  readonly #streams = new Counter<'http_route' | 'kind'>({
    name: 'portcullis_streams_ended_total',
    help: 'Closed event streams and WebSockets, by endpoint.',
    labelNames: ['http_route', 'kind'],
    registers: [],
  });
  #active = 0;
  readonly metrics: readonly Metric[] = [
    this.#durations,
    gauge(
      'http_server_active_requests',
      'Requests in progress, including event streams and WebSockets.',
      () => this.#active,
    ),
    this.#streams,
  ];

  /** Counts a request that begins; the caller must call `end` once for it. */
  begin(): void {
    this.#active += 1;
  }

  end(exchange: Exchange, aborted: boolean): void {
    this.#active -= 1;
    const { req, res, upgrade } = exchange;
    const route = exchange.state.endpoint?.path ?? '';
    const isEventStream = res.getHeader('content-type')?.toString().startsWith('text/event-stream');
    const stream = upgrade && res.statusCode === 101 ? 'websocket' : isEventStream ? 'sse' : undefined;
    const seconds = (performance.now() - exchange.startedTick) / 1_000;
    if (stream) this.#streams.inc({ http_route: route, kind: stream });
    else this.#observe(route, req.method, { status: endStatusOf(exchange, aborted), seconds });
  }

  /** Counts a response to bytes that are not valid HTTP. */
  unparsed(status: number): void {
    this.#observe('', undefined, { status, seconds: 0 });
  }

  #observe(route: string, method: string | undefined, { status, seconds }: { status: number; seconds: number }): void {
    const labels = {
      http_request_method: methodOf(method),
      http_route: route,
      http_response_status_code: String(status < MAX_STATUS ? status : 0),
    };
    this.#durations.observe(labels, seconds);
  }
}

/** Starts the span of a request, as a child of the caller's `traceparent`, and runs the request within it. */
export function runTraced(tracer: Tracer, request: Exchange, run: () => void): void {
  const { req } = request;
  const method = methodOf(req.method);
  const { traceparent } = req.headers;
  const span = tracer.start(method, {
    kind: 'server',
    parent: typeof traceparent === 'string' ? traceparent : undefined,
    attributes: { 'http.request.method': method, 'network.protocol.version': req.httpVersion },
  });
  request.span = span;
  span.run(run);
}

/**
 * Runs work for a request within its span, so that log lines have its trace id. Events of the connection have no span
 * of their own.
 */
export function withinSpan<Result>({ span }: Pick<Exchange, 'span'>, work: () => Result): Result {
  return span ? span.run(work) : work();
}

/**
 * Ends the span of a request and names it by method and endpoint pattern. Omits path and correlation id, because either
 * may identify a caller or a person.
 */
export function endSpan(exchange: Exchange, aborted: boolean): void {
  const { span, req, state } = exchange;
  if (!span) return;
  const status = endStatusOf(exchange, aborted);
  const route = state.endpoint?.path;
  span.tell(
    { 'http.response.status_code': status, ...(route === undefined ? {} : { 'http.route': route }) },
    route === undefined ? undefined : `${methodOf(req.method)} ${route}`,
  );
  span.end(status >= 500 ? String(status) : undefined);
}

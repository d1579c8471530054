import { durations } from '../../lib/meters.ts';
import type { Span, Tracer } from '../../lib/tracing.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { methodOf } from '../exchange/request-metrics.ts';

/** The labels of a call that begins. */
interface CallLabels {
  service: string;
  http_request_method: string;
}

/**
 * How a call failed: the upstream was unreachable or timed out, its response was invalid or was cut off, or the client
 * left.
 */
export type CallError = 'unreachable' | 'invalid_response' | 'timeout' | 'left' | 'cut';

/** Measures and traces the calls of upstreams. */
export class UpstreamCalls {
  readonly durations = durations<keyof CallLabels | 'http_response_status_code' | 'error_type'>({
    name: 'http_client_request_duration_seconds',
    help: 'Duration of requests to upstream services, up to the last byte of the response. Each attempt counts separately.',
    labelNames: ['service', 'http_request_method', 'http_response_status_code', 'error_type'],
  });
  readonly #tracer: Tracer | undefined;

  constructor(tracer?: Tracer) {
    this.#tracer = tracer;
  }

  /** Starts the duration and the span of an attempt; `attempt` counts from 1. */
  begin(service: string, { req, span }: Exchange, attempt: number): UpstreamCall {
    const method = methodOf(req.method);
    const child =
      span &&
      this.#tracer?.start(method, {
        kind: 'client',
        parent: span.traceparent,
        attributes: {
          'http.request.method': method,
          'peer.service': service,
          ...(attempt > 1 ? { 'http.request.resend_count': attempt - 1 } : {}),
        },
      });
    return new UpstreamCall(this.durations, { service, http_request_method: method }, child);
  }
}

/** An attempt to call an upstream. Only the first call of `end` has an effect. */
export class UpstreamCall {
  readonly #deps;
  readonly #startedTick = performance.now();
  #status = 0;
  #isStream = false;
  #isEnded = false;

  constructor(durations: UpstreamCalls['durations'], labels: CallLabels, span: Span | undefined) {
    this.#deps = { durations, labels, span };
  }

  /** The `traceparent` header for the upstream; undefined when the request is not traced. */
  get traceparent(): string | undefined {
    return this.#deps.span?.traceparent;
  }

  /** Records the status of a response that has begun. The duration of a stream is not measured. */
  answered(status: number, isStream: boolean): void {
    this.#status = status;
    this.#isStream = isStream;
  }

  end(error?: CallError): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    if (!this.#isStream) {
      const status = this.#status === 0 ? '' : String(this.#status);
      const labels = { ...this.#deps.labels, http_response_status_code: status, error_type: error ?? '' };
      this.#deps.durations.observe(labels, (performance.now() - this.#startedTick) / 1_000);
    }
    if (this.#status > 0) this.#deps.span?.tell({ 'http.response.status_code': this.#status });
    this.#deps.span?.end(error ?? (this.#status >= 400 ? String(this.#status) : undefined));
  }
}

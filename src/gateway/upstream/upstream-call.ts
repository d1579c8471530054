import { BoundHistogram, type Durations } from '../../lib/bound-histogram.ts';
import type { Span, Tracer } from '../../lib/tracing.ts';
import type { Exchange } from '../exchange.ts';
import { methodOf } from '../request-metrics.ts';

type Label = 'service' | 'http_request_method' | 'http_response_status_code' | 'error_type';

/** How a call failed, where no answer says it. */
export type CallError = 'unreachable' | 'timeout' | 'left' | 'cut';

/** Measures and traces what is sent to remote services. */
export class UpstreamCalls {
  readonly durations = new BoundHistogram<Label>({
    name: 'http_client_request_duration_seconds',
    help: 'How long remote services took, from the request to the last byte of the answer; each attempt by itself.',
    labelNames: ['service', 'http_request_method', 'http_response_status_code', 'error_type'],
  });
  readonly #tracer: Tracer | undefined;
  readonly #series = new Map<string, Durations>();

  constructor(tracer?: Tracer) {
    this.#tracer = tracer;
  }

  /** An attempt is sent. */
  begin(service: string, { req, span }: Exchange, attempt: number): UpstreamCall {
    const method = methodOf(req.method);
    const resent = attempt > 1 ? { 'http.request.resend_count': attempt - 1 } : {};
    const attributes = { 'http.request.method': method, 'peer.service': service, ...resent };
    const child = span && this.#tracer?.start(method, { kind: 'client', parent: span.traceparent, attributes });
    return new UpstreamCall(child, (status, error, seconds) =>
      this.#observe(service, method, { status, error, seconds }),
    );
  }

  #observe(
    service: string,
    method: string,
    call: { status: number; error: CallError | undefined; seconds: number },
  ): void {
    const { status, error = '', seconds } = call;
    const key = `${service} ${method} ${status} ${error}`;
    let series = this.#series.get(key);
    if (!series) {
      series = this.durations.bind({
        service,
        http_request_method: method,
        http_response_status_code: status === 0 ? '' : String(status),
        error_type: error,
      });
      this.#series.set(key, series);
    }
    series.observe(seconds);
  }
}

type OnEnd = (status: number, error: CallError | undefined, seconds: number) => void;

/** One attempt at an upstream. It ends once. */
export class UpstreamCall {
  readonly #span: Span | undefined;
  readonly #onEnd: OnEnd;
  readonly #startedTick = performance.now();
  #status = 0;
  #isStream = false;
  #isEnded = false;

  constructor(span: Span | undefined, onEnd: OnEnd) {
    this.#span = span;
    this.#onEnd = onEnd;
  }

  /** What the upstream is told to go on from. */
  get traceparent(): string | undefined {
    return this.#span?.traceparent;
  }

  /** Its answer begins; how long a stream lasts is not measured. */
  answered(status: number, isStream: boolean): void {
    this.#status = status;
    this.#isStream = isStream;
  }

  end(error?: CallError): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    if (!this.#isStream) this.#onEnd(this.#status, error, (performance.now() - this.#startedTick) / 1_000);
    if (this.#status > 0) this.#span?.tell({ 'http.response.status_code': this.#status });
    this.#span?.end(error ?? (this.#status >= 400 ? String(this.#status) : undefined));
  }
}

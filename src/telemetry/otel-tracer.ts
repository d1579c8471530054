import {
  type Context,
  SpanKind as Kind,
  type Span as OtelSpan,
  ROOT_CONTEXT,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BasicTracerProvider, ParentBasedSampler, TraceIdRatioBasedSampler } from '@opentelemetry/sdk-trace-base';
import { ATTR_ERROR_TYPE, ATTR_SERVICE_NAME, ATTR_SERVICE_VERSION } from '@opentelemetry/semantic-conventions';
import type { TracingConfig } from '../config/config.ts';
import type { Span, SpanAttributes, SpanKind, SpanStart, Tracer } from '../lib/tracing.ts';
import { validTraceparent } from '../lib/tracing.ts';
import { BoundedSpans, type OnSpans } from './bounded-spans.ts';

const EXPORT_TIMEOUT_MS = 5_000;
const EXPORTS_AT_ONCE = 2;
const STOP_MS = 1_500;
const MAX_ATTRIBUTE_CHARACTERS = 256;

const KINDS: Record<SpanKind, Kind> = {
  server: Kind.SERVER,
  client: Kind.CLIENT,
  producer: Kind.PRODUCER,
  consumer: Kind.CONSUMER,
  internal: Kind.INTERNAL,
};

/** Spans over OTLP. Whatever the collector does, nothing waits for it: the queue is bounded, the rest is dropped. */
export class OtelTracer implements Tracer {
  readonly #contexts = new AsyncLocalStorageContextManager().enable();
  readonly #provider: BasicTracerProvider;
  readonly #tracer;

  constructor(
    { endpoint, headers, serviceName, ratio, exportEveryMs }: TracingConfig,
    version: string,
    onSpans: OnSpans,
  ) {
    const exporter = new OTLPTraceExporter({
      url: `${endpoint}/v1/traces`,
      headers: { ...headers },
      timeoutMillis: EXPORT_TIMEOUT_MS,
      concurrencyLimit: EXPORTS_AT_ONCE,
    });
    this.#provider = new BasicTracerProvider({
      resource: resourceFromAttributes({ [ATTR_SERVICE_NAME]: serviceName, [ATTR_SERVICE_VERSION]: version }),
      sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) }),
      spanProcessors: [new BoundedSpans({ exporter, exportEveryMs, exportTimeoutMs: EXPORT_TIMEOUT_MS, onSpans })],
      generalLimits: { attributeValueLengthLimit: MAX_ATTRIBUTE_CHARACTERS },
    });
    this.#tracer = this.#provider.getTracer('portcullis', version);
  }

  start(name: string, { kind, parent, attributes = {} }: SpanStart): Span {
    const context = contextOf(parent);
    const span = this.#tracer.startSpan(name, { kind: KINDS[kind], attributes }, context);
    return new StartedSpan(span, this.#contexts);
  }

  get activeTraceId(): string | undefined {
    return trace.getSpanContext(this.#contexts.active())?.traceId;
  }

  /** Sends what waits, within a bounded time. */
  async stop(): Promise<void> {
    const { promise: over, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, STOP_MS);
    await Promise.race([this.#provider.shutdown().catch(() => undefined), over]);
    clearTimeout(timer);
    this.#contexts.disable();
  }
}

class StartedSpan implements Span {
  readonly traceparent: string;
  readonly traceId: string;
  readonly #span: OtelSpan;
  readonly #contexts: AsyncLocalStorageContextManager;

  constructor(span: OtelSpan, contexts: AsyncLocalStorageContextManager) {
    const { traceId, spanId, traceFlags } = span.spanContext();
    this.traceparent = `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
    this.traceId = traceId;
    this.#span = span;
    this.#contexts = contexts;
  }

  tell(attributes: SpanAttributes, name?: string): void {
    this.#span.setAttributes(attributes);
    if (name !== undefined) this.#span.updateName(name);
  }

  end(error?: string): void {
    if (error !== undefined) {
      this.#span.setAttribute(ATTR_ERROR_TYPE, error);
      this.#span.setStatus({ code: SpanStatusCode.ERROR });
    }
    this.#span.end();
  }

  run<Result>(work: () => Result): Result {
    return this.#contexts.with(trace.setSpan(ROOT_CONTEXT, this.#span), work);
  }
}

/** A remote or local parent, which are the same to a child. */
function contextOf(traceparent: string | undefined): Context {
  const given = validTraceparent(traceparent);
  if (given === undefined) return ROOT_CONTEXT;
  const [, traceId = '', spanId = '', flags = ''] = given.split('-');
  const spanContext = { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1, isRemote: true };
  return trace.setSpanContext(ROOT_CONTEXT, spanContext);
}

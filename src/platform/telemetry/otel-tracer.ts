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
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  ParentBasedSampler,
  type ReadableSpan,
  type SpanExporter,
  type SpanProcessor,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace-base';
import { ATTR_ERROR_TYPE, ATTR_SERVICE_NAME, ATTR_SERVICE_VERSION } from '@opentelemetry/semantic-conventions';
import {
  type Span,
  type SpanAttributes,
  type SpanKind,
  type SpanStart,
  type Tracer,
  validTraceparent,
} from '../../lib/tracing.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import type { TracingConfig } from '../config/config.ts';

/** Called with a number of spans and their outcome. */
type OnSpans = (spans: number, outcome: 'taken' | 'refused' | 'dropped') => void;

/** A bounded queue of spans, exported in batches. OpenTelemetry's own queue does not report the spans that it drops. */
class BoundedSpans implements SpanProcessor {
  readonly #batches: BatchSpanProcessor;
  readonly #onSpans: OnSpans;
  readonly #maxWaiting: number;
  #waiting = 0;

  constructor(exporter: SpanExporter, config: TracingConfig, onSpans: OnSpans) {
    this.#onSpans = onSpans;
    this.#maxWaiting = config.maxWaiting;
    this.#batches = new BatchSpanProcessor(this.#counted(exporter), {
      maxQueueSize: config.maxWaiting,
      maxExportBatchSize: Math.min(config.maxBatch, config.maxWaiting),
      exportTimeoutMillis: config.exportTimeoutMs,
      scheduledDelayMillis: config.exportEveryMs,
    });
  }

  onStart(): void {}

  onEnd(span: ReadableSpan): void {
    if (this.#waiting === this.#maxWaiting) {
      this.#onSpans(1, 'dropped');
      return;
    }
    this.#waiting += 1;
    this.#batches.onEnd(span);
  }

  forceFlush(): Promise<void> {
    return this.#batches.forceFlush();
  }

  shutdown(): Promise<void> {
    return this.#batches.shutdown();
  }

  #counted(exporter: SpanExporter): SpanExporter {
    return {
      export: (spans, done) => {
        this.#waiting -= spans.length;
        exporter.export(spans, (result) => {
          this.#onSpans(spans.length, result.code === 0 ? 'taken' : 'refused');
          done(result);
        });
      },
      shutdown: () => exporter.shutdown(),
      forceFlush: async () => exporter.forceFlush?.(),
    };
  }
}

const EXPORTS_AT_ONCE = 2;
const STOP_MS = 1_500;

const KINDS: Record<SpanKind, Kind> = {
  server: Kind.SERVER,
  client: Kind.CLIENT,
  producer: Kind.PRODUCER,
  consumer: Kind.CONSUMER,
  internal: Kind.INTERNAL,
};

/**
 * A tracer that exports spans by OTLP. Nothing waits for the collector: the queue is bounded, and excess spans are
 * dropped.
 */
export class OtelTracer implements Tracer {
  readonly #contexts = new AsyncLocalStorageContextManager().enable();
  readonly #provider: BasicTracerProvider;
  readonly #tracer;

  constructor(config: TracingConfig, version: string, onSpans: OnSpans) {
    const exporter = new OTLPTraceExporter({
      url: config.url,
      headers: config.headers,
      timeoutMillis: config.timeoutMs,
      concurrencyLimit: EXPORTS_AT_ONCE,
    });
    const named = { [ATTR_SERVICE_NAME]: config.serviceName, [ATTR_SERVICE_VERSION]: version };
    const sampler = new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(config.ratio) });
    this.#provider = new BasicTracerProvider({
      resource: resourceFromAttributes({ ...config.attributes, ...named }),
      ...(!config.isSamplerNamed && { sampler }),
      spanProcessors: [new BoundedSpans(exporter, config, onSpans)],
      spanLimits: { attributeValueLengthLimit: config.maxCharacters },
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

  /** Sends the spans that still wait, for 1.5 s at most, and stops. */
  async stop(): Promise<void> {
    await withTimeout(this.#provider.shutdown(), STOP_MS).catch(() => undefined);
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

/** Returns the context of a parent span, remote or local; the root context if there is no valid parent. */
function contextOf(traceparent: string | undefined): Context {
  const parent = validTraceparent(traceparent);
  if (parent === undefined) return ROOT_CONTEXT;
  const [, traceId = '', spanId = '', flags = ''] = parent.split('-');
  const spanContext = { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1, isRemote: true };
  return trace.setSpanContext(ROOT_CONTEXT, spanContext);
}

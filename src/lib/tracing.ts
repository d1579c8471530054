/** The relation of a span to other processes, as OpenTelemetry defines it. */
export type SpanKind = 'server' | 'client' | 'producer' | 'consumer' | 'internal';

/**
 * The attributes of a span, named as in OpenTelemetry's semantic conventions. They must not contain secrets or personal
 * data.
 */
export type SpanAttributes = Readonly<Record<string, string | number>>;

/** A span: one operation within a trace. */
export interface Span {
  /** The header `traceparent` (W3C Trace Context) for child spans in this and other processes. */
  readonly traceparent: string;
  readonly traceId: string;
  /** Adds attributes, and replaces the name of the span if `name` is given. */
  tell(attributes: SpanAttributes, name?: string): void;
  /** Ends the span; `error` is the type of the error if the operation failed. */
  end(error?: string): void;
  /** Runs `work` with this span as the active one, so that its log lines have the trace id. */
  run<Result>(work: () => Result): Result;
}

/** The options of a new span. */
export interface SpanStart {
  kind: SpanKind;
  /** The `traceparent` of the parent span; a new trace begins if it is absent or invalid. */
  parent?: string | undefined;
  attributes?: SpanAttributes;
}

/** Creates spans. Where there is no tracer, tracing is off. */
export interface Tracer {
  start(name: string, start: SpanStart): Span;
  /** The trace id of the active span; undefined if there is none. */
  readonly activeTraceId: string | undefined;
}

const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** Returns `value` if it is a valid `traceparent` of W3C Trace Context, version 00, and undefined otherwise. */
export function validTraceparent(value: unknown): string | undefined {
  return typeof value === 'string' && TRACEPARENT.test(value) ? value : undefined;
}

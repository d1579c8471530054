/** How a span stands to what is outside of the process. */
export type SpanKind = 'server' | 'client' | 'producer' | 'consumer' | 'internal';

/** What is said of a span, under the names of the semantic conventions. Never a secret, nor what a person is known by. */
export type SpanAttributes = Readonly<Record<string, string | number>>;

/** A span: one operation in a trace. */
export interface Span {
  /** What children go on from, in this process and in others (W3C Trace Context). */
  readonly traceparent: string;
  readonly traceId: string;
  /** Says more of it; the name replaces that of the beginning. */
  tell(attributes: SpanAttributes, name?: string): void;
  /** Ends it, with the kind of its error where it has failed. */
  end(error?: string): void;
  /** Runs work within it: what is logged there carries its trace. */
  run<Result>(work: () => Result): Result;
}

export interface SpanStart {
  kind: SpanKind;
  /** The `traceparent` that it goes on from; without a valid one a trace begins. */
  parent?: string | undefined;
  attributes?: SpanAttributes;
}

/** What makes spans; where there is none, tracing is off. */
export interface Tracer {
  start(name: string, start: SpanStart): Span;
  /** The trace of the work that is going on, if any. */
  readonly activeTraceId: string | undefined;
}

const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** A `traceparent` as W3C Trace Context has it; undefined for what is none. */
export function validTraceparent(given: unknown): string | undefined {
  return typeof given === 'string' && TRACEPARENT.test(given) ? given : undefined;
}

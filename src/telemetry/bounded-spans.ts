import {
  BatchSpanProcessor,
  type ReadableSpan,
  type SpanExporter,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace-base';

/** Spans that wait for the collector; those that come when there are so many are dropped. */
const MAX_WAITING_SPANS = 2_048;
const BATCH_SPANS = 512;

/** What has become of spans: taken by the collector, not taken, or not even sent for want of room. */
type SpanOutcome = 'taken' | 'refused' | 'dropped';

/** Told of how many spans something has become. */
export type OnSpans = (spans: number, outcome: SpanOutcome) => void;

interface BoundedSpansOptions {
  exporter: SpanExporter;
  exportEveryMs: number;
  exportTimeoutMs: number;
  onSpans: OnSpans;
}

/** Spans on their way to the exporter, in batches. OpenTelemetry's own queue tells nobody of what it has no room for. */
export class BoundedSpans implements SpanProcessor {
  readonly #batches: BatchSpanProcessor;
  readonly #onSpans: OnSpans;
  #waiting = 0;

  constructor({ exporter, exportEveryMs, exportTimeoutMs, onSpans }: BoundedSpansOptions) {
    this.#onSpans = onSpans;
    this.#batches = new BatchSpanProcessor(this.#counted(exporter), {
      maxQueueSize: MAX_WAITING_SPANS,
      maxExportBatchSize: BATCH_SPANS,
      exportTimeoutMillis: exportTimeoutMs,
      scheduledDelayMillis: exportEveryMs,
    });
  }

  onStart(): void {}

  onEnd(span: ReadableSpan): void {
    if (this.#waiting === MAX_WAITING_SPANS) {
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

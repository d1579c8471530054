import type { Counter } from 'prom-client';
import { type Log, withFields } from '../../lib/log.ts';
import { counterBy } from '../../lib/meters.ts';
import type { Tracer } from '../../lib/tracing.ts';
import type { TracingConfig } from '../config/config.ts';

/** Opens tracing if it is configured. Spans that still wait are sent when the stack is disposed of. */
export async function openTracing(
  config: TracingConfig | undefined,
  { log, version }: { log: Log; version: string },
  stack: AsyncDisposableStack,
): Promise<{
  /** The tracer; undefined if tracing is off, in which case OpenTelemetry is not loaded. */
  tracer: Tracer | undefined;
  /** The log to use for traced work; if tracing is on, its lines have the trace's id. */
  log: Log;
  /** The counter of completed spans, by whether the collector has accepted them. */
  exported: Counter<'outcome'>;
}> {
  const exported = counterBy('outcome', ['taken', 'lost'], {
    name: 'portcullis_spans_exported_total',
    help: 'Finished spans, by outcome (taken by the collector, lost).',
  });
  if (!config) return { tracer: undefined, log, exported };
  const { OtelTracer } = await import('./otel-tracer.ts');
  let isRefused = false;
  const tracer = new OtelTracer(config, version, (spans, outcome) => {
    exported.inc({ outcome: outcome === 'taken' ? 'taken' : 'lost' }, spans);
    // A collector that is only too slow accepts some spans and loses others: the metric is enough.
    if (outcome === 'dropped') return;
    const wasRefused = isRefused;
    isRefused = outcome === 'refused';
    if (isRefused && !wasRefused) log.warn({ spans }, 'trace collector rejects spans; dropping them');
  });
  stack.defer(() => tracer.stop());
  const tracedLog = withFields(log, (fields) => {
    const { activeTraceId: trace_id } = tracer;
    return trace_id === undefined ? fields : { trace_id, ...fields };
  });
  return { tracer, log: tracedLog, exported };
}

import { Counter } from 'prom-client';
import { type Log, withFields } from '../../lib/log.ts';
import type { Tracer } from '../../lib/tracing.ts';
import type { TracingConfig } from '../config/config.ts';

/** Returns a log whose lines carry the trace that they belong to. */
function tracedLog(log: Log, tracer: Tracer): Log {
  return withFields(log, (fields) => {
    const trace_id = tracer.activeTraceId;
    return trace_id === undefined ? fields : { trace_id, ...fields };
  });
}

/** What traces a process, if anything does. */
export interface Tracing {
  /** Undefined where tracing is off: nothing of it is loaded then. */
  tracer: Tracer | undefined;
  /** The log of all that is traced. */
  log: Log;
  /** What has become of spans. */
  exported: Counter<'outcome'>;
}

/** Opens tracing where it is configured; what it holds is sent as the stack is disposed. */
export async function openTracing(
  config: TracingConfig | undefined,
  { log, version }: { log: Log; version: string },
  stack: AsyncDisposableStack,
): Promise<Tracing> {
  const exported = new Counter({
    name: 'portcullis_spans_exported_total',
    help: 'Spans that have ended, by whether the collector has taken them; what it does not take, or not in time, is lost.',
    labelNames: ['outcome'],
    registers: [],
  });
  for (const outcome of ['taken', 'lost']) exported.inc({ outcome }, 0);
  if (!config) return { tracer: undefined, log, exported };
  const { OtelTracer } = await import('./otel-tracer.ts');
  let isRefused = false;
  const tracer = new OtelTracer(config, version, (spans, outcome) => {
    exported.inc({ outcome: outcome === 'taken' ? 'taken' : 'lost' }, spans);
    // A collector that is only too slow takes some and loses others: the metric shows it.
    if (outcome === 'dropped') return;
    const wasRefused = isRefused;
    isRefused = outcome === 'refused';
    if (isRefused && !wasRefused) log.warn({ spans }, 'the collector does not take spans: they are lost until it does');
  });
  stack.defer(() => tracer.stop());
  return { tracer, log: tracedLog(log, tracer), exported };
}

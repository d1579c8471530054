import { operationDurations } from '../api/graphql/execution/operation-durations.ts';
import { toolOutcomes } from '../api/mcp/kit/tool.ts';
import type { EventBus } from '../events/bus/event-bus.ts';
import { ObservedBus } from '../events/bus/observed-bus.ts';
import { ConnectionMetrics } from '../gateway/connections.ts';
import { RequestMetrics } from '../gateway/exchange/request-metrics.ts';
import type { Tracing } from '../platform/telemetry/open-tracing.ts';

/** Makes the metrics of a process, and wraps its bus in an observer. */
export function openTelemetry({ tracer, exported }: Tracing, bus: EventBus) {
  return {
    tracer,
    requests: new RequestMetrics(),
    connections: new ConnectionMetrics(),
    operations: operationDurations(),
    toolOutcomes: toolOutcomes(),
    bus: new ObservedBus(bus, tracer),
    exported,
  };
}

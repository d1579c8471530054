import type { Server, ServerResponse } from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { collectDefaultMetrics, type Metric, Registry } from 'prom-client';
import { createServer } from '../gateway/exchange/node-http.ts';
import { gauge } from '../lib/meters.ts';
import { isReady, type Readiness } from '../platform/health.ts';

const MISNAMED = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total'];

/**
 * Makes the operator's HTTP server, which the public listener cannot reach: `/metrics`, `/livez`, `/readyz`, and
 * `/readyz?exclude=stores`, which stays ready while stores are down. `/status` has counts and opaque ids alone: no name of
 * a host, and nothing that a caller wrote.
 */
export function adminServer(
  readiness: (excludesStores: boolean) => Readiness,
  metrics: readonly Metric[] = [],
  status: () => Promise<object | undefined> = async () => undefined,
): Server {
  const registry = new Registry();
  // Its own measurement of the event loop takes a timer, which would wake a process at rest a hundred times a second.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 2 ** 31 - 1 });
  // Gauges with the names of counters; `nodejs_active_resources` has the same numbers by type.
  for (const name of MISNAMED) registry.removeSingleMetric(name);
  const delays = monitorEventLoopDelay({ samplePerIteration: true });
  delays.enable();
  const nanoseconds: Readonly<Record<string, () => number>> = {
    min: () => delays.min,
    max: () => delays.max,
    mean: () => delays.mean,
    stddev: () => delays.stddev,
    p50: () => delays.percentile(50),
    p90: () => delays.percentile(90),
    p99: () => delays.percentile(99),
  };
  for (const [part, read] of Object.entries(nanoseconds)) {
    const name = `nodejs_eventloop_lag_${part}_seconds`;
    registry.removeSingleMetric(name);
    registry.registerMetric(gauge(name, `Delay of the event loop since the last scrape: ${part}.`, () => read() / 1e9));
  }
  for (const metric of metrics) registry.registerMetric(metric);

  async function answer(target: string, res: ServerResponse): Promise<void> {
    switch (target) {
      case '/livez':
        return send(res, 200, 'text/plain', 'ok\n');
      case '/readyz':
      case '/readyz?exclude=stores': {
        const report = readiness(target !== '/readyz');
        return send(res, isReady(report) ? 200 : 503, 'application/json', JSON.stringify(report));
      }
      case '/status': {
        const document = JSON.stringify((await status()) ?? {}, (name, value) => (name === 'host' ? undefined : value));
        return send(res, 200, 'application/json', document);
      }
      case '/metrics': {
        const text = await registry.metrics();
        delays.reset();
        return send(res, 200, registry.contentType, text);
      }
      default:
        return send(res, 404, 'text/plain', 'not found\n');
    }
  }

  return createServer((req, res) => {
    answer(req.url ?? '', res).catch(() => send(res, 500, 'text/plain', 'internal error\n'));
  });
}

function send(res: ServerResponse, status: number, contentType: string, body: string): void {
  res.writeHead(status, { 'Content-Type': contentType });
  res.end(body);
}

import type { Server, ServerResponse } from 'node:http';
import { collectDefaultMetrics, type Metric, Registry } from 'prom-client';
import { createServer } from '../gateway/exchange/node-http.ts';
import { isReady, type Readiness } from '../platform/health.ts';

/** How often a timer measures the delay of the event loop: each time wakes a process at rest. */
const LAG_TIMER_MS = 100;
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
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LAG_TIMER_MS });
  // Gauges with the names of counters; `nodejs_active_resources` has the same numbers by type.
  for (const name of MISNAMED) registry.removeSingleMetric(name);
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
      case '/metrics':
        return send(res, 200, registry.contentType, await registry.metrics());
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

import type { Tracer } from '../lib/tracing.ts';
import type { Exchange } from './exchange.ts';
import { endStatusOf, methodOf } from './request-metrics.ts';

/** Begins the span of a request, and runs it within. A caller's `traceparent` is what it goes on from. */
export function runTraced(tracer: Tracer, exchange: Exchange, run: () => void): void {
  const { req } = exchange;
  const method = methodOf(req.method);
  const { traceparent } = req.headers;
  const span = tracer.start(method, {
    kind: 'server',
    parent: typeof traceparent === 'string' ? traceparent : undefined,
    attributes: { 'http.request.method': method, 'network.protocol.version': req.httpVersion },
  });
  exchange.span = span;
  span.run(run);
}

/** Runs work of a request where its lines of the log carry its trace: an event of its connection knows nothing of it. */
export function withinSpan({ span }: Pick<Exchange, 'span'>, work: () => void): void {
  if (span) span.run(work);
  else work();
}

/**
 * Ends it under its endpoint's pattern. The path is left out, and so is the correlation id: either may hold what a caller
 * or a person is known by.
 */
export function endSpan(exchange: Exchange, aborted: boolean): void {
  const { span, match, req } = exchange;
  if (!span) return;
  const status = endStatusOf(exchange, aborted);
  const route = match?.endpoint.path;
  span.tell(
    { 'http.response.status_code': status, ...(route === undefined ? {} : { 'http.route': route }) },
    route === undefined ? undefined : `${methodOf(req.method)} ${route}`,
  );
  span.end(status >= 500 ? String(status) : undefined);
}

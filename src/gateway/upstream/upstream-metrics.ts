import { Counter, Gauge, type Metric } from 'prom-client';
import type { UpstreamCounts } from './upstream.ts';
import type { Upstreams } from './upstreams.ts';

/**
 * What an operator sees of the remote services; collected when asked for, so that requests pay nothing. Requests that go on
 * at a service that was removed or changed are among those of its name.
 */
export function upstreamMetrics(upstreams: Upstreams): Metric[] {
  const labelNames = ['service'];
  return [
    new Counter({
      name: 'portcullis_upstream_requests_total',
      help: 'Requests to remote services, by what became of them; one that was sent twice is under retried as well.',
      labelNames: ['service', 'outcome'],
      registers: [],
      collect() {
        this.reset();
        for (const { name, counts } of upstreams.all) {
          for (const [outcome, count] of countsOf(counts)) this.inc({ service: name, outcome }, count);
        }
      },
    }),
    new Gauge({
      name: 'portcullis_upstream_requests',
      help: 'Requests to remote services that go on or wait for their turn, and open WebSockets.',
      labelNames: ['service', 'state'],
      registers: [],
      collect() {
        this.reset();
        for (const { name, requests, sockets } of [...upstreams.all, ...upstreams.retired]) {
          this.inc({ service: name, state: 'going' }, requests.going);
          this.inc({ service: name, state: 'waiting' }, requests.waiting);
          this.inc({ service: name, state: 'websocket' }, sockets.going);
        }
      },
    }),
    new Gauge({
      name: 'portcullis_upstream_circuit_closed',
      help: 'Whether requests are sent to a remote service (1), or answered 503 at once (0).',
      labelNames,
      registers: [],
      collect() {
        this.reset();
        for (const { name, circuit } of upstreams.all) this.set({ service: name }, circuit.kind === 'closed' ? 1 : 0);
      },
    }),
  ];
}

function countsOf(counts: UpstreamCounts): [outcome: string, count: number][] {
  const { timedOut, ...others } = counts;
  return Object.entries({ ...others, timed_out: timedOut });
}

import { Histogram } from 'prom-client';

/** The upper bounds of the buckets, in seconds, as OpenTelemetry's semantic conventions for HTTP metrics advise. */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];

interface DurationsOptions<Label extends string> {
  name: string;
  help: string;
  labelNames: readonly Label[];
}

/** Creates a histogram of durations in seconds. It belongs to no registry until it is registered with one. */
export function durations<Label extends string>({ labelNames, ...options }: DurationsOptions<Label>): Histogram<Label> {
  return new Histogram({ ...options, labelNames: [...labelNames], buckets: SECONDS, registers: [] });
}

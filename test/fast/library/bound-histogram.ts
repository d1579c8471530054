import { Histogram } from 'prom-client';

/** The histogram of prom-client, whose labels are looked up at each value. */
export class BoundHistogram<Label extends string> extends Histogram<Label> {
  constructor(options: { name: string; help: string; labelNames: readonly Label[] }) {
    const buckets = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
    super({ ...options, labelNames: [...options.labelNames], buckets, registers: [] });
  }

  bind(labels: Record<Label, string>) {
    return this.labels(labels);
  }
}

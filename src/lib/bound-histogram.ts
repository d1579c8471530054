import { Histogram, type MetricObjectWithValues, type MetricValueWithName } from 'prom-client';

/** Where the conventions draw the lines of a duration, in seconds (OpenTelemetry semantic conventions, HTTP metrics). */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10] as const;

/** The durations under one set of labels. */
export interface Durations {
  /** Counts one, in seconds. */
  observe(seconds: number): void;
}

interface BoundHistogramOptions<Label extends string> {
  name: string;
  help: string;
  labelNames: readonly Label[];
}

/**
 * A histogram of durations for what happens with every request: whoever counts binds its labels once, and counting is two
 * additions; the histogram of prom-client would make an object, sort it and join it to a text each time.
 */
export class BoundHistogram<Label extends string> extends Histogram<Label> {
  readonly #options: BoundHistogramOptions<Label>;
  readonly #series = new Map<string, Series<Label>>();

  constructor(options: BoundHistogramOptions<Label>) {
    const { name, help, labelNames } = options;
    super({ name, help, labelNames: [...labelNames], registers: [] });
    this.#options = options;
  }

  /** The series of these labels: the same for the same labels, in the order of the names. */
  bind(labels: Record<Label, string>): Durations {
    const key = this.#options.labelNames.map((name) => labels[name]).join('\n');
    const series = this.#series.get(key) ?? new Series(labels);
    this.#series.set(key, series);
    return series;
  }

  override get(): Promise<MetricObjectWithValues<MetricValueWithName<Label>>> {
    return this.getForPromString();
  }

  /** What the registry asks for. */
  async getForPromString(): Promise<MetricObjectWithValues<MetricValueWithName<Label>>> {
    const { name, help } = this.#options;
    const values = this.#series.values().flatMap((series) => series.values(name));
    const told = { name, help, type: 'histogram', values: [...values], aggregator: 'sum' };
    // The library's own type of a metric's type is a numeric enumeration; what it makes and reads is this text.
    return told as unknown as MetricObjectWithValues<MetricValueWithName<Label>>;
  }
}

class Series<Label extends string> implements Durations {
  readonly #labels: Record<Label, string>;
  readonly #counts: number[] = [...SECONDS, Number.POSITIVE_INFINITY].map(() => 0);
  #sum = 0;

  constructor(labels: Record<Label, string>) {
    this.#labels = labels;
  }

  observe(seconds: number): void {
    let at = 0;
    while (at < SECONDS.length && seconds > (SECONDS[at] ?? 0)) at += 1;
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    this.#sum += seconds;
  }

  values(name: string) {
    const labels = this.#labels;
    let count = 0;
    const buckets = this.#counts.map((own, at) => {
      count += own;
      return { metricName: `${name}_bucket`, labels: { ...labels, le: SECONDS[at] ?? '+Inf' }, value: count };
    });
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: this.#sum },
      { metricName: `${name}_count`, labels, value: count },
    ];
  }
}

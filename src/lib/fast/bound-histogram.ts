import { Histogram, type MetricObjectWithValues, type MetricValueWithName } from 'prom-client';

/** The upper bounds of the buckets, in seconds, as OpenTelemetry's semantic conventions for HTTP metrics advise. */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10] as const;

/** A series of the histogram: the durations with one set of labels. */
export interface Durations {
  /** Records one duration, in seconds. */
  observe(seconds: number): void;
}

interface BoundHistogramOptions<Label extends string> {
  name: string;
  help: string;
  labelNames: readonly Label[];
}

/**
 * A histogram of durations for what happens in every request. Labels are bound once, after which recording costs two
 * additions. The histogram of prom-client instead builds, sorts and joins the labels for each value.
 */
export class BoundHistogram<Label extends string> extends Histogram<Label> {
  readonly #options: BoundHistogramOptions<Label>;
  readonly #series = new Map<string, Series<Label>>();

  constructor(options: BoundHistogramOptions<Label>) {
    const { name, help, labelNames } = options;
    super({ name, help, labelNames: [...labelNames], registers: [] });
    this.#options = options;
  }

  /** Returns the series with these labels, always the same object for the same labels. */
  bind(labels: Record<Label, string>): Durations {
    const key = this.#options.labelNames.map((name) => labels[name]).join('\n');
    const series = this.#series.get(key) ?? new Series(labels);
    this.#series.set(key, series);
    return series;
  }

  override get(): Promise<MetricObjectWithValues<MetricValueWithName<Label>>> {
    return this.getForPromString();
  }

  /** Returns the metric as the registry of prom-client reads it. */
  async getForPromString(): Promise<MetricObjectWithValues<MetricValueWithName<Label>>> {
    const { name, help } = this.#options;
    const values = this.#series.values().flatMap((series) => series.values(name));
    const metric = { name, help, type: 'histogram', values: [...values], aggregator: 'sum' };
    // prom-client declares the metric type as a numeric enum, but writes and reads this string.
    return metric as unknown as MetricObjectWithValues<MetricValueWithName<Label>>;
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

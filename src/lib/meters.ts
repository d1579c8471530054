import { Counter, type CounterConfiguration, Gauge, Histogram, type LabelValues } from 'prom-client';

// A metric belongs to no registry until it is registered with one.

/** The upper bounds of the buckets, in seconds, as OpenTelemetry's semantic conventions for HTTP metrics advise. */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];

interface DurationsOptions<Label extends string> {
  name: string;
  help: string;
  labelNames: readonly Label[];
}

/** Creates a histogram of durations in seconds. */
export function durations<Label extends string>({ labelNames, ...options }: DurationsOptions<Label>): Histogram<Label> {
  return new Histogram({ ...options, labelNames: [...labelNames], buckets: SECONDS, registers: [] });
}

/** Creates a counter with a series for each of these values of its label, from 0 on. */
export function counterBy<Label extends string>(
  label: Label,
  values: readonly string[],
  options: Pick<CounterConfiguration<Label>, 'name' | 'help'>,
): Counter<Label> {
  const counter = new Counter({ ...options, labelNames: [label], registers: [] });
  for (const value of values) counter.inc({ [label]: value } as LabelValues<Label>, 0);
  return counter;
}

/** Creates a gauge whose value is read when it is collected; it has none while that is undefined. */
export function gauge(
  name: string,
  help: string,
  read: () => number | boolean | undefined | Promise<number | undefined>,
): Gauge {
  return new Gauge({
    name,
    help,
    registers: [],
    async collect() {
      const value = await read();
      if (value === undefined) this.remove();
      else this.set(Number(value));
    },
  });
}

/** Series of a metric: their labels and values. Those with the same labels are added up. */
type Series<Label extends string> = readonly (readonly [labels: LabelValues<Label>, value: number])[];

interface ReadOptions<Label extends string> extends DurationsOptions<Label> {
  /** Returns all series, when the metric is collected. */
  read(): Series<Label> | Promise<Series<Label>>;
}

/** Creates a gauge whose series are read when it is collected. */
export function gauges<Label extends string>(options: ReadOptions<Label>): Gauge<Label> {
  return new Gauge(collecting(options));
}

/** Creates a counter whose series are counted elsewhere, and read when it is collected. */
export function counters<Label extends string>(options: ReadOptions<Label>): Counter<Label> {
  return new Counter(collecting(options));
}

function collecting<Label extends string>({ labelNames, read, ...options }: ReadOptions<Label>) {
  return {
    ...options,
    labelNames: [...labelNames],
    registers: [],
    async collect(this: Counter<Label> | Gauge<Label>) {
      const series = await read();
      this.reset();
      for (const [labels, value] of series) this.inc(labels, value);
    },
  };
}

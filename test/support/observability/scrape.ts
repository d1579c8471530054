import type { Service } from '../../../src/app/service.ts';

/** A line of a scrape. */
export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

/** What stands above the lines of a metric. */
export interface Family {
  name: string;
  type: string;
  help: string;
}

export interface Scrape {
  text: string;
  families: Map<string, Family>;
  samples: Sample[];
  /** The value of the one line with this name whose labels have these; undefined where there is none. */
  value(name: string, labels?: Record<string, string>): number | undefined;
}

const LINE = /^(?<name>[a-zA-Z_:][\w:]*)(?:\{(?<labels>.*)\})? (?<value>\S+)$/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"(?:,|$)/g;

/** Asks for the metrics of an instance. */
export async function scrape({ adminUrl }: Pick<Service, 'adminUrl'>): Promise<Scrape> {
  const response = await fetch(`${adminUrl}/metrics`);
  if (response.status !== 200) throw new Error(`the metrics answer ${response.status}`);
  return parse(await response.text());
}

/** Reads the text format of Prometheus, version 0.0.4. */
function parse(text: string): Scrape {
  const families = new Map<string, Family>();
  const samples: Sample[] = [];
  for (const line of text.split('\n').filter((one) => one !== '')) {
    const [, kind, name = '', rest = ''] = /^# (HELP|TYPE) (\S+) ?(.*)$/.exec(line) ?? [];
    if (kind !== undefined) {
      const family = families.get(name) ?? { name, type: '', help: '' };
      families.set(name, { ...family, [kind.toLowerCase()]: rest });
      continue;
    }
    const sample = LINE.exec(line)?.groups;
    if (!sample) throw new Error(`no line of the text format: ${line}`);
    const labels = [...(sample.labels ?? '').matchAll(LABEL)].map(([, label = '', value = '']) => [label, value]);
    samples.push({ name: sample.name ?? '', labels: Object.fromEntries(labels), value: Number(sample.value) });
  }
  const value = (name: string, wanted: Record<string, string> = {}) => {
    const holds = ({ labels }: Sample) => Object.entries(wanted).every(([label, given]) => labels[label] === given);
    return samples.find((sample) => sample.name === name && holds(sample))?.value;
  };
  return { text, families, samples, value };
}

/** The family that a line belongs to. */
export function familyOf({ families }: Scrape, { name }: Pick<Sample, 'name'>): Family | undefined {
  return families.get(name) ?? families.get(name.replace(/_(?:bucket|sum|count)$/, ''));
}

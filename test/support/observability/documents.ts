import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { ROOT } from '../start/process.ts';

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

/** A line of the table of metrics. */
interface Documented {
  name: string;
  labels: string[];
  meaning: string;
}

/** The table of metrics in docs/operations/metrics.md. */
export function documented(): Documented[] {
  const rows = read('docs/operations/metrics.md')
    .split('\n')
    .filter((line) => line.startsWith('| `'));
  return rows.map((row) => {
    const [name = '', labels = '', meaning = ''] = row
      .split('|')
      .slice(1)
      .map((cell) => cell.trim());
    const named = [...labels.matchAll(/`(\w+)`/g)].map(([, label = '']) => label);
    return { name: name.replaceAll('`', ''), labels: named.sort(), meaning };
  });
}

export interface Alert {
  alert: string;
  expr: string;
  /** How long its expression must have held. */
  for?: string;
  labels: { severity?: string };
  annotations: { summary?: string; description?: string; runbook_url?: string };
}

/** The shipped alert rules. */
export function alerts(): Alert[] {
  const { groups }: { groups: { rules: Alert[] }[] } = parse(read('deploy/prometheus/alerts.yaml'));
  return groups.flatMap(({ rules }) => rules);
}

interface Dashboard {
  panels: { targets?: { expr: string }[] }[];
  templating: { list: { name: string; query: string | { query: string } }[] };
}

const dashboard = (): Dashboard => JSON.parse(read('deploy/grafana/portcullis.json'));

/** The expressions of the shipped dashboard, with the variables of Grafana in place. */
export function dashboardExpressions(rateInterval = '5m'): string[] {
  const expressions = dashboard().panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
  return expressions.map((expr) => expr.replaceAll('$__rate_interval', rateInterval).replaceAll('$instance', '.*'));
}

/** What the shipped dashboard asks for the values of a variable: the series and their label. */
export function dashboardVariable(name: string): { series: string; label: string } {
  const { query = '' } = dashboard().templating.list.find((variable) => variable.name === name) ?? {};
  const text = typeof query === 'string' ? query : query.query;
  const [, series, label] = /^label_values\((.+), (\w+)\)$/.exec(text) ?? [];
  if (series === undefined || label === undefined) throw new Error(`${name} is no list of a label's values: ${text}`);
  return { series, label };
}

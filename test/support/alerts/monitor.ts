import { join } from 'node:path';
import { readYaml } from '../deploy/files.ts';
import { alerts } from '../observability/documents.ts';
import { startPrometheus } from '../services/prometheus.ts';
import { serviceAddress } from '../services/real.ts';
import { faster } from './durations.ts';

/** How many times faster than deployed the alerts are run: their ranges still hold two scrapes. */
export const FACTOR = 33;
const EVALUATION_MS = 1_000;
/** What a range of five minutes becomes. */
export const RATE_INTERVAL = `${Math.round((5 * 60_000) / FACTOR)}ms`;
/** A worker answers a scrape after two seconds when a store is silent; Prometheus never waits longer than an interval. */
const WORKER_SCRAPE_MS = 2_250;
const GATEWAY_SCRAPE_MS = 1_000;

/** A series of an answer. */
interface Sample {
  metric: Record<string, string>;
  value: [number, string];
}

interface AlertLabels {
  alertname: string;
  [label: string]: string;
}

interface Firing {
  labels: AlertLabels;
  annotations: { runbook_url: string };
  state: 'pending' | 'firing';
}

/** A Prometheus that scrapes processes, with the deployed rules made faster. */
export interface Monitor extends AsyncDisposable {
  /** The series that an expression gives now; throws where it is no PromQL. */
  query(expression: string): Promise<Sample[]>;
  /** The alerts whose condition holds, whether they fire yet or not. */
  alerts(): Promise<Firing[]>;
  /** The labels of the alerts that have fired since a time, in ms since 1970. */
  firedSince(sinceMs: number): Promise<AlertLabels[]>;
  /** The values that a label has. */
  valuesOf(label: string, series: string): Promise<string[]>;
}

interface Targets {
  gateways: readonly string[];
  workers: readonly string[];
}

interface Deployed {
  scrape_configs: { job_name: string; static_configs: object[] }[];
}

export async function startMonitor(folder: string, targets: Targets): Promise<Monitor> {
  const deployed = readYaml<Deployed>('deploy/prometheus/prometheus.yaml');
  const jobs = deployed.scrape_configs.flatMap((job) => [
    scrapeOf(job, 'gateways', targets.gateways, GATEWAY_SCRAPE_MS),
    scrapeOf(job, 'workers', targets.workers, WORKER_SCRAPE_MS),
  ]);
  const rules = alerts().map((rule) => faster(rule, FACTOR));
  const { url, stop } = await startPrometheus({
    command: serviceAddress('prometheus'),
    dataDir: join(folder, 'prometheus'),
    config: { ...deployed, global: { evaluation_interval: `${EVALUATION_MS}ms` }, scrape_configs: jobs },
    files: { 'alerts.yaml': { groups: [{ name: 'portcullis', rules }] } },
    lookbackDelta: RATE_INTERVAL,
  });
  const ask = async (path: string, parameters: Record<string, string>) => {
    const response = await fetch(`${url}/api/v1/${path}?${new URLSearchParams(parameters)}`);
    const answer = (await response.json()) as { status: string; error?: string; data: unknown };
    if (answer.status !== 'success') throw new Error(`${JSON.stringify(parameters)}: ${answer.error}`);
    return answer.data;
  };
  const query = async (expression: string) => {
    const { result } = (await ask('query', { query: expression })) as { result: Sample[] };
    return result;
  };
  return {
    query,
    alerts: async () => ((await ask('alerts', {})) as { alerts: Firing[] }).alerts,
    async firedSince(sinceMs) {
      const range = `${Math.ceil(Date.now() - sinceMs)}ms`;
      const fired = await query(`count_over_time(ALERTS{alertstate="firing"}[${range}])`);
      return fired.map(({ metric: { alertname = '', ...labels } }) => ({ alertname, ...labels }));
    },
    valuesOf: async (label, series) => (await ask(`label/${label}/values`, { 'match[]': series })) as string[],
    [Symbol.asyncDispose]: stop,
  };
}

/** The deployed job for some of its targets: other jobs of Prometheus have other names, but the series have the deployed one. */
function scrapeOf(job: Deployed['scrape_configs'][number], name: string, targets: readonly string[], everyMs: number) {
  return {
    ...job,
    job_name: name,
    scrape_interval: `${everyMs}ms`,
    scrape_timeout: `${everyMs}ms`,
    static_configs: [{ targets: targets.map((url) => new URL(url).host) }],
    relabel_configs: [{ target_label: 'job', replacement: job.job_name }],
  };
}

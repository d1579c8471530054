import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Alert } from '../observability/documents.ts';
import { runCommand } from '../services/commands.ts';
import { promtoolOf } from '../services/prometheus.ts';
import { serviceAddress } from '../services/real.ts';
import { AFTER_MINUTES, type AlertCase, type Series, WELL_MINUTES } from './cases.ts';

const STEP_SECONDS = 15;
const STEPS_A_MINUTE = 60 / STEP_SECONDS;
/** Series are scraped, and rules evaluated, as often as deploy/prometheus/prometheus.yaml says. */
export const INTERVAL = `${STEP_SECONDS}s`;
const STEP_MINUTES = 1 / STEPS_A_MINUTE;
const FIRING = 'alertstate="firing"';

type Phase = 'fault' | 'almost';

/** One alert with the cases that are to be tried on it. */
export interface Trial {
  name: string;
  rules: readonly Alert[];
  cases: readonly AlertCase[];
}

/** Runs `promtool` on its arguments; throws with what it says. */
export function promtool(...args: string[]): Promise<string> {
  return runCommand(promtoolOf(serviceAddress('prometheus')), args);
}

/** Tries rules on their cases, all in one run of `promtool test rules`; gives the names of the trials that failed, and what was said of them. */
export async function failedTrials(
  folder: string,
  trials: readonly Trial[],
): Promise<{ failed: string[]; said: string }> {
  await mkdir(folder, { recursive: true });
  const files = await Promise.all(
    trials.map(async ({ rules, cases }, index) => {
      const [rulesFile, file] = [join(folder, `${index}-rules.json`), join(folder, `${index}.json`)];
      await writeFile(rulesFile, JSON.stringify({ groups: [{ name: 'portcullis', rules }] }));
      const tests = cases.flatMap((one) => [firing(one, rules), silent(one)]);
      await writeFile(file, JSON.stringify({ rule_files: [rulesFile], evaluation_interval: INTERVAL, tests }));
      return file;
    }),
  );
  const { out, err } = await promtool('test', 'rules', ...files).then((out) => ({ out, err: '' }), outputOf);
  // What has failed is told by the other output.
  const verdicts = [...out.matchAll(/^Unit Testing: {2}\S+\/(\d+)\.json\n( {2}SUCCESS)?/gm)];
  if (verdicts.length !== trials.length)
    throw new Error(`promtool has tried ${verdicts.length} of ${trials.length}: ${err}`);
  const failed = verdicts.flatMap(([, index = '', success]) =>
    success === undefined ? [trials[Number(index)]?.name ?? ''] : [],
  );
  return { failed, said: err };
}

/** The alert is silent until it fires and from its end on, and no other fires. */
function firing(one: AlertCase, rules: readonly Alert[]): object {
  const { alert, fires, quiet, lasts, labels, description, also } = one;
  const rule = rules.find((each) => each.alert === alert);
  const { summary, runbook_url } = rule?.annotations ?? {};
  const exp_alerts = [
    {
      exp_labels: { ...labels, severity: rule?.labels.severity },
      exp_annotations: { summary, description, runbook_url },
    },
  ];
  // Whether a range has its beginning in it depends on the version of Prometheus: what is seen through one moves by a step.
  const margin = rule?.expr.includes('[') ? STEP_MINUTES : 0;
  const fired = [alert, ...also];
  return {
    ...scraped(one, 'fault', lasts),
    name: `${alert} ${one.when}`,
    alert_rule_test: [{ eval_time: at(fires + margin), alertname: alert, exp_alerts }],
    promql_expr_test: [
      isFiring(alert, fires - margin - STEP_MINUTES, false),
      isFiring(alert, quiet - margin - STEP_MINUTES, true),
      isFiring(alert, quiet + margin, false),
      haveFired(one, fired),
    ],
  };
}

/** Nothing fires. */
function silent(one: AlertCase): object {
  return {
    ...scraped(one, 'almost', one.almostLasts),
    name: `${one.alert} ${one.when}: not quite`,
    promql_expr_test: [haveFired(one, [])],
  };
}

function isFiring(alert: string, minute: number, firing: boolean): object {
  const expr = `count(ALERTS{alertname="${alert}",${FIRING}})`;
  return { expr, eval_time: at(minute), exp_samples: firing ? [{ labels: '{}', value: 1 }] : [] };
}

/** Those that have fired since shortly before the fault. */
function haveFired(one: AlertCase, alerts: readonly string[]): object {
  return {
    expr: `count by (alertname) (count_over_time(ALERTS{${FIRING}}[${(endOf(one) + 1) * 60}s]))`,
    eval_time: at(endOf(one)),
    exp_samples: alerts.map((alert) => ({ labels: `{alertname="${alert}"}`, value: 1 })),
  };
}

function endOf({ lasts, quiet }: AlertCase): number {
  return Math.max(lasts, quiet) + AFTER_MINUTES;
}

function at(minutesOfFault: number): string {
  return `${(WELL_MINUTES + minutesOfFault) * 60}s`;
}

function scraped(one: AlertCase, phase: Phase, lasts: number): object {
  const input_series = Object.entries(one.series).map(([series, how]) => ({
    series,
    values: valuesOf(how, phase, lasts, endOf(one)),
  }));
  return { interval: INTERVAL, input_series };
}

/** In the notation of promtool, a value for each scrape. */
function valuesOf(series: Series, phase: Phase, lasts: number, end: number): string {
  const [well, fault] = [WELL_MINUTES * STEPS_A_MINUTE, lasts * STEPS_A_MINUTE];
  const isFault = (step: number) => step >= well && step < well + fault;
  const steps = Array.from({ length: (WELL_MINUTES + end) * STEPS_A_MINUTE + 1 }, (_, step) => step);
  if ('gap' in series) {
    const { minutes, before, ...after } = series.gap;
    const failed = well + minutes * STEPS_A_MINUTE;
    return steps
      .map((step) => (step < well ? before : step > failed ? after[phase] : step > well ? '_' : 'stale'))
      .join(' ');
  }
  if ('level' in series) {
    const levels = steps.map((step) => series.level[isFault(step) ? phase : 'well']);
    return levels.map((value, step) => value ?? (levels[step - 1] === undefined ? '_' : 'stale')).join(' ');
  }
  const { start, well: usual } = series.rise;
  const during = (step: number) => Math.min(Math.max(step - well + 1, 0), fault);
  return steps
    .map((step) => start + ((step + 1 - during(step)) * usual + during(step) * series.rise[phase]) / STEPS_A_MINUTE)
    .join(' ');
}

function outputOf({ cause }: Error): { out: string; err: string } {
  const { stdout, stderr } = cause as { stdout: string; stderr: string };
  return { out: stdout, err: stderr };
}

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { CASES } from '../support/alerts/cases.ts';
import { mutants } from '../support/alerts/mutants.ts';
import { failedTrials, INTERVAL, promtool, type Trial } from '../support/alerts/promtool.ts';
import { readYaml } from '../support/deploy/files.ts';
import { type Alert, alerts } from '../support/observability/documents.ts';
import { temporaryFolder } from '../support/services/folders.ts';
import { describeReal } from '../support/services/real.ts';
import { ROOT } from '../support/start/process.ts';

/** Of the changed alerts, a quick run tries one in so many: changes of every kind are among these. */
const EACH = inject('isThorough') ? 1 : 45;

const withoutCase = (rules: readonly Alert[], cases: readonly { alert: string }[]) =>
  rules.map(({ alert }) => alert).filter((alert) => !cases.some((one) => one.alert === alert));

/** The alert and those that cannot but fire with it, on its cases. */
function trialOf(name: string, rule: Alert): Trial {
  const cases = CASES.filter(({ alert }) => alert === rule.alert);
  const also = alerts().filter(({ alert }) => cases.some((one) => one.also.includes(alert)));
  return { name, rules: [rule, ...also], cases };
}

it('every alert has a test case, and every test case an alert', () => {
  expect(withoutCase(alerts(), CASES)).toEqual([]);
  expect(new Set(CASES.map(({ alert }) => alert)).size).toBe(alerts().length);
  const [first, ...others] = CASES;
  expect(withoutCase(alerts(), others)).toEqual([first?.alert]);
});

describeReal('prometheus', 'the alerts, as promtool runs them', () => {
  let folder = '';
  beforeAll(async () => {
    folder = await temporaryFolder();
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it('the configuration and the rules are valid, with the scrape and evaluation intervals of the test cases', async () => {
    const config = join(ROOT, 'deploy/prometheus/prometheus.yaml');
    expect(await promtool('check', 'config', config)).toContain(`${alerts().length} rules found`);
    expect(await promtool('check', 'rules', join(ROOT, 'deploy/prometheus/alerts.yaml'))).toContain('SUCCESS');
    const { global } = readYaml<{ global: object }>('deploy/prometheus/prometheus.yaml');
    expect(global).toMatchObject({ scrape_interval: INTERVAL, evaluation_interval: INTERVAL });
  });

  it('each alert fires with its message once its condition has lasted, then resolves; below its threshold it does not fire', async () => {
    const trials = alerts().map((rule) => trialOf(rule.alert, rule));
    const { failed, said } = await failedTrials(join(folder, 'deployed'), trials);
    expect(failed, said).toEqual([]);
  });

  it('changing any number or duration of an alert makes a test case fail', async () => {
    const every = alerts().flatMap((rule) => mutants(rule).map(({ name, mutant }) => trialOf(name, mutant)));
    const trials = every.filter((_, at) => at % EACH === 0);
    expect(every.length).toBeGreaterThan(4 * alerts().length);
    const { failed } = await failedTrials(join(folder, 'mutants'), trials);
    expect(failed.toSorted()).toEqual(trials.map(({ name }) => name).toSorted());
  });
});

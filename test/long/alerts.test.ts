import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { watchCpu } from '../support/alerts/cpu-shortage.ts';
import { type AlertFault, FAULTS } from '../support/alerts/faults.ts';
import { alertFixture } from '../support/alerts/fixture.ts';
import { RATE_INTERVAL } from '../support/alerts/monitor.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { alerts, dashboardExpressions, dashboardVariable } from '../support/observability/documents.ts';
import { describeReal } from '../support/services/real.ts';
import { whyNoSmallDisk } from '../support/start/small-disk.ts';

const reason = whyNoSmallDisk();
/**
 * Its ten minutes are 18 seconds here, in which the slowest request in a hundred is the slowest of twenty or so. On a machine
 * that is short of CPU for that long, it fires whatever the fault is, and rightly.
 */
const SLOW = 'PortcullisSlow';
/** The share of the time in which work waits for a CPU, from which on a machine is short of it. */
const SHORT_OF_CPU = 0.8;
const WAIT = { timeout: 90_000, interval: 200 };
/** The query of the dashboard that has no series before anything has gone wrong: what share of an endpoint's requests fails. */
const SHOWS_FAULTS = /http_response_status_code=~"5\.\."/;

it('every alert is raised by a simulated fault, and every expected side alert exists', () => {
  const fired = new Set(FAULTS.flatMap(({ fires }) => fires));
  const names = alerts().map(({ alert }) => alert);
  expect([...fired].sort()).toEqual(names.toSorted());
  const following = FAULTS.flatMap(({ follows }) => Object.keys(follows ?? {}));
  expect(following.filter((alert) => !names.includes(alert))).toEqual([]);
});

describe.skipIf(reason !== undefined)(`under load${reason ? ` [${reason}]` : ''}`, () => {
  describeReal(['postgres', 'redis', 'kafka', 'prometheus'], 'two gateways and a worker, watched by Prometheus', () => {
    const fixture = beforeTests(alertFixture);
    const reports: string[][] = [];
    beforeAll(async () => {
      await vi.waitFor(async () => {
        expect(await fixture.monitor.query('up == 1')).toHaveLength(3);
        expect(fixture.load.acknowledged()).toBeGreaterThan(100);
      }, WAIT);
      await quiet();
    });
    afterAll(async () => {
      process.stdout.write(`\n${tableOf(reports)}\n`);
    });

    /** Resolves when no alert fires, nor is about to. */
    async function quiet(): Promise<void> {
      await vi.waitFor(async () => {
        const left = (await fixture.monitor.alerts()).map(({ labels, state }) => `${labels.alertname} is ${state}`);
        if (left.length > 0) throw new Error(left.join(', '));
      }, WAIT);
    }

    /** Resolves when the alerts of a fault fire, and lead to its runbook. */
    async function firing({ fires, runbook }: AlertFault): Promise<void> {
      await vi.waitFor(async () => {
        const all = await fixture.monitor.alerts();
        const firing = all.filter(({ state }) => state === 'firing');
        const lacking = fires.filter((name) => !firing.some(({ labels }) => labels.alertname === name));
        if (lacking.length > 0) throw new Error(`${lacking} of ${JSON.stringify(all.map(({ labels }) => labels))}`);
        const first = firing.find(({ labels }) => labels.alertname === fires[0]);
        expect(first?.annotations.runbook_url).toBe(`docs/operations/${runbook}`);
      }, WAIT);
    }

    async function silentQueries(): Promise<string[]> {
      const silent: string[] = [];
      for (const expression of dashboardExpressions(RATE_INTERVAL)) {
        const numbers = (await fixture.monitor.query(expression)).map(({ value }) => Number(value[1]));
        if (!numbers.some(Number.isFinite)) silent.push(expression);
      }
      return silent;
    }

    it('every dashboard query returns data, except the query that shows only faults', async () => {
      await vi.waitFor(async () => {
        const silent = await silentQueries();
        expect(silent.filter((expression) => !SHOWS_FAULTS.test(expression))).toEqual([]);
      }, WAIT);
      const { series, label } = dashboardVariable('instance');
      expect(await fixture.monitor.valuesOf(label, series)).toHaveLength(3);
    });

    const cases = FAULTS.map((fault) => [fault.name, fault] as const);
    it.each(cases)(
      '%s: the alerts of its runbook fire, no unrelated alert does, and all resolve afterwards',
      async (name, fault) => {
        await quiet();
        const beganAtMs = Date.now();
        const cpuShortage = watchCpu();
        await withFault(fault);
        const endedAtMs = Date.now();
        await quiet();
        const fired = await fixture.monitor.firedSince(beganAtMs);
        const seconds = [endedAtMs - beganAtMs, Date.now() - endedAtMs].map((ms) => (ms / 1_000).toFixed(0));
        const names = new Set(fired.map(({ alertname }) => alertname.replace('Portcullis', '')));
        const shortage = cpuShortage();
        reports.push([name, ...seconds, shortage.toFixed(2), [...names].sort().join(', ')]);
        const slow = shortage > SHORT_OF_CPU ? [SLOW] : [];
        const allowed = [...fault.fires, ...Object.keys(fault.follows ?? {}), ...slow];
        expect(fired.filter(({ alertname }) => !allowed.includes(alertname))).toEqual([]);
      },
    );

    async function withFault(fault: AlertFault): Promise<void> {
      await using end = new AsyncDisposableStack();
      await fault.make(fixture, end);
      await firing(fault);
    }

    it('every dashboard query returns data after faults', async () => {
      const share = fixture.remote.answer;
      fixture.remote.answer = (_req, res) => void res.writeHead(500).end();
      await vi.waitFor(async () => expect(await silentQueries()).toEqual([]), WAIT);
      fixture.remote.answer = share;
    });
  });
});

function tableOf(reports: readonly string[][]): string {
  const head = ['fault', 'fired after, s', 'quiet after, s', 'waited for CPU', 'alerts'];
  return [head, head.map(() => '---'), ...reports].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

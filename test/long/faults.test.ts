import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  cut,
  delayed,
  type Fault,
  type FaultReport,
  frozen,
  killed,
  rollingRestart,
  underFault,
} from '../support/faults/faults.ts';
import { NOTHING_AMISS } from '../support/faults/findings.ts';
import { type Lab, type Role, startLab } from '../support/faults/lab.ts';
import { tableOf } from '../support/faults/table.ts';
import { describeReal } from '../support/services/real.ts';

const READERS = 3;
const PARTITIONS = 12;

const LABS: { roles: Role[]; faults: Fault[] }[] = [
  {
    roles: ['gateway', 'worker'],
    faults: [
      killed('kafka'),
      killed('redis'),
      killed('postgres'),
      killed('gateway'),
      killed('worker'),
      cut('kafka', 5_000),
      cut('redis', 5_000),
      cut('postgres', 5_000),
      delayed('kafka', 2_000, 15_000),
      delayed('redis', 2_000, 15_000),
      delayed('postgres', 2_000, 15_000),
      frozen('kafka', 30_000),
      frozen('redis', 30_000),
      frozen('postgres', 30_000),
      frozen('gateway', 30_000),
      frozen('worker', 30_000),
    ],
  },
  { roles: ['all', 'all', 'all'], faults: [killed('all'), frozen('all', 30_000), rollingRestart] },
];

const reports: FaultReport[] = [];
afterAll(() => process.stdout.write(`\n${tableOf(reports)}\n`));

for (const { roles, faults } of LABS) {
  describeReal(['postgres', 'redis', 'kafka'], `replicas in the roles ${roles.join(', ')}`, () => {
    let lab: Lab;
    beforeAll(async () => {
      lab = await startLab(roles, { partitions: PARTITIONS });
    });
    afterAll(() => lab?.[Symbol.asyncDispose]());

    it.each(faults)('D6-10 D6-16 D6-18: $name: nothing is lost, nothing comes twice', async (fault) => {
      const report = await underFault(lab, fault);
      reports.push(report);
      expect(report.amiss).toEqual(NOTHING_AMISS(READERS));
    });
  });
}

import { afterAll, beforeAll, expect, it } from 'vitest';
import { cut, delayed, type Fault, type FaultReport, frozen, killed, underFault } from '../faults/faults.ts';
import { NOTHING_AMISS } from '../faults/findings.ts';
import { type Lab, startLab } from '../faults/lab.ts';
import { describeReal } from '../services/real.ts';

const FAULTS: Fault[] = [
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
];

describeReal(['postgres', 'redis', 'kafka'], 'a gateway and a worker under faults', () => {
  let lab: Lab;
  const reports: FaultReport[] = [];
  beforeAll(async () => {
    lab = await startLab(['gateway', 'worker'], { partitions: 12 });
  });
  afterAll(() => lab?.[Symbol.asyncDispose]());

  it.each(FAULTS)('$name', async (fault) => {
    const report = await underFault(lab, fault);
    reports.push(report);
    process.stdout.write(`${JSON.stringify(report)}\n`);
    expect(report.amiss).toEqual(NOTHING_AMISS(3));
  });
});

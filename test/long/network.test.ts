import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Fault, type FaultReport, underFault } from '../support/faults/faults.ts';
import { NOTHING_AMISS } from '../support/faults/findings.ts';
import { type Lab, type ServerName, startLab } from '../support/faults/lab.ts';
import { badLine, misnamed, moved } from '../support/faults/line.ts';
import { type Network, networkRefusal, startNetwork } from '../support/faults/network.ts';
import { tableOf } from '../support/faults/table.ts';
import { describeReal } from '../support/services/real.ts';

const READERS = 3;
const PARTITIONS = 4;
const PACE = { restMs: 100 };
const LIMIT_MS = 150_000;
const STORES: ServerName[] = ['postgres', 'redis', 'kafka'];

const FAULTS: Fault[] = [
  ...STORES.flatMap((name) => [
    badLine(name, '10 % of the packets are lost', { loss: 0.1 }),
    badLine(name, 'packets are 200 ms late, give or take 50', { delay_ms: 200, jitter_ms: 50 }),
    badLine(name, 'nothing comes from it', { out: true }),
    badLine(name, 'nothing goes to it', { in: true }),
    misnamed(name, 'late'),
    misnamed(name, 'wrong'),
  ]),
  // A broker names its own address to its clients.
  moved('postgres'),
  moved('redis'),
];

const refusal = networkRefusal();
const reports: FaultReport[] = [];
afterAll(() => void (reports.length > 0 && process.stdout.write(`\n${tableOf(reports)}\n`)));

describe.skipIf(refusal !== undefined)(`a network of its own${refusal === undefined ? '' : ` [${refusal}]`}`, () => {
  describeReal(STORES, 'whose packets pass a relay', () => {
    let network: Network;
    let lab: Lab;
    beforeAll(async () => {
      network = await startNetwork();
      lab = await startLab(['gateway', 'worker'], { partitions: PARTITIONS, network });
    });
    afterAll(async () => {
      await lab?.[Symbol.asyncDispose]();
      await network?.[Symbol.asyncDispose]();
    });

    it.each(FAULTS)(
      'D6-10 D6-16 D6-18: $name: nothing is lost, nothing comes twice',
      async (fault) => {
        const report = await underFault(lab, fault, PACE);
        reports.push(report);
        expect(report.amiss).toEqual(NOTHING_AMISS(READERS));
      },
      LIMIT_MS,
    );
  });
});

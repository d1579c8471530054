import { describe, it } from 'vitest';
import { type ServerName, startCluster } from '../support/faults/cluster.ts';
import type { Fault } from '../support/faults/faults.ts';
import { badLine, misnamed, moved } from '../support/faults/line.ts';
import { networkRefusal, startNetwork } from '../support/faults/network.ts';
import { faultTable } from '../support/faults/table.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { describeReal } from '../support/services/real.ts';

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
const expectNothingAmissAfter = faultTable();

describe.skipIf(refusal !== undefined)(`a network of its own${refusal === undefined ? '' : ` [${refusal}]`}`, () => {
  describeReal(STORES, 'whose packets pass a relay', () => {
    const network = beforeTests(startNetwork);
    const cluster = beforeTests(() => startCluster(['gateway', 'worker'], { partitions: PARTITIONS, network }));

    it.each(FAULTS)(
      'D6-10 D6-16 D6-18: $name: nothing is lost and nothing is delivered twice',
      async (fault) => {
        await expectNothingAmissAfter(cluster, fault, PACE);
      },
      LIMIT_MS,
    );
  });
});

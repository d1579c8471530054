import { it } from 'vitest';
import { type Role, startCluster } from '../support/faults/cluster.ts';
import { cut, delayed, type Fault, frozen, killed, rollingRestart } from '../support/faults/faults.ts';
import { faultTable } from '../support/faults/table.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { describeReal } from '../support/services/real.ts';

const PARTITIONS = 12;

const CLUSTERS: { roles: Role[]; faults: Fault[] }[] = [
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

const expectNothingAmissAfter = faultTable();

for (const { roles, faults } of CLUSTERS) {
  describeReal(['postgres', 'redis', 'kafka'], `replicas in the roles ${roles.join(', ')}`, () => {
    const cluster = beforeTests(() => startCluster(roles, { partitions: PARTITIONS }));

    it.each(faults)('D6-10 D6-16 D6-18: $name: nothing is lost and nothing is delivered twice', async (fault) => {
      await expectNothingAmissAfter(cluster, fault);
    });
  });
}

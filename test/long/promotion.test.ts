import { it } from 'vitest';
import { startCluster } from '../support/faults/cluster.ts';
import { misled, type Promotion, promoted } from '../support/faults/promotion.ts';
import { faultTable } from '../support/faults/table.ts';
import { describeReal } from '../support/services/real.ts';

const PARTITIONS = 6;
const PACE = { restMs: 100 };
const LIMIT_MS = 180_000;

const expectNothingAmissAfter = faultTable();

describeReal(['postgres', 'redis', 'kafka'], 'PostgreSQL is replaced by its streaming replica', () => {
  it.each<Promotion>([
    { leave: 'killed', isSynchronous: true },
    { leave: 'frozen', isSynchronous: true },
    { leave: 'read-only', isSynchronous: false, lagMs: 0 },
  ])(
    'D6-10 D6-16 D6-18: the primary is $leave, synchronous $isSynchronous: nothing acknowledged is lost',
    async (promotion) => {
      await using cluster = await startCluster(['gateway', 'worker'], { partitions: PARTITIONS });
      await expectNothingAmissAfter(cluster, promoted(promotion), PACE);
    },
    LIMIT_MS,
  );

  it(
    'D6-10 D6-18: when the database address leads to a replica for a while, nothing is lost',
    async () => {
      await using cluster = await startCluster(['gateway', 'worker'], { partitions: PARTITIONS });
      await expectNothingAmissAfter(cluster, misled(4_000), PACE);
    },
    LIMIT_MS,
  );
});

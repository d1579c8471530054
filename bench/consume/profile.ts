import { profileProduct } from '../lib/profile.ts';
import type { Table } from '../lib/report.ts';
import { deleteTopics } from '../lib/topics.ts';
import type { World } from '../lib/world.ts';
import { applying, type Effort, filled } from './measure.ts';

/** Where a worker on servers spends its time on notifications that wait, once it is warm. */
export async function profile(world: World, effort: Effort): Promise<Table[]> {
  const { notifications, warmUp } = effort;
  try {
    return await profileProduct({
      product: await filled(world, effort),
      warmUp: notifications * warmUp,
      requests: notifications * (1 - warmUp),
      prepare: async () => {
        let count = 0;
        return (more) => {
          count += more;
          return applying(world, count);
        };
      },
    });
  } finally {
    await deleteTopics(world);
  }
}

import { profileProduct } from '../lib/profile.ts';
import type { Table } from '../lib/report.ts';
import { deleteTopics } from '../lib/topics.ts';
import type { World } from '../lib/world.ts';
import { applying, type Effort, filled } from './measure.ts';

/** Where the product spends its time on notifications that wait, once it is warm. */
export async function profile(world: World, effort: Effort): Promise<Table[]> {
  const { notifications, warmUp } = effort;
  try {
    return await profileProduct({
      product: await filled(world, effort),
      warmUp: notifications * warmUp,
      requests: notifications * (1 - warmUp),
      prepare: async (server) => {
        let count = 0;
        return async (more) => {
          count += more;
          await applying(world, server, effort, count);
        };
      },
    });
  } finally {
    if (world.stores === 'servers') await deleteTopics(world);
  }
}

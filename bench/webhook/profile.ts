import { profileProduct } from '../lib/profile.ts';
import type { Table } from '../lib/report.ts';
import { deleteTopics } from '../lib/topics.ts';
import type { World } from '../lib/world.ts';
import { askedOf, prepared } from './contenders.ts';
import { type Effort, roundsOf } from './measure.ts';

/** Where the product spends its time on notifications, once it is warm. */
export async function profile(world: World, { requests, warmUp }: Effort): Promise<Table[]> {
  const round = roundsOf();
  try {
    return await profileProduct({
      product: await prepared(world),
      warmUp,
      requests,
      prepare: async (server) => (count) => round({ server, asked: askedOf(server, world) }, count),
    });
  } finally {
    if (world.stores === 'servers') await deleteTopics(world);
  }
}

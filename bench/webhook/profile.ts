import type { Effort } from '../lib/pairs.ts';
import { profileProduct, profileServer } from '../lib/profile.ts';
import type { Table } from '../lib/report.ts';
import { deleteTopics } from '../lib/topics.ts';
import { emptyFolder, type World } from '../lib/world.ts';
import { askedOf, prepared, startBare } from './contenders.ts';
import { roundsOf } from './measure.ts';

/** Where the product spends its time on notifications, once it is warm, and on servers the floor beside it. */
export async function profile(world: World, { requests, warmUp }: Effort): Promise<Table[]> {
  await using folder = await emptyFolder();
  const round = roundsOf();
  try {
    const ofProduct = await profileProduct({
      product: await prepared(world),
      warmUp,
      requests,
      prepare: async (server) => (count) => round({ server, asked: askedOf(server, world) }, count),
    });
    if (world.stores === 'embedded') return ofProduct;
    const ofFloor = await profileServer({
      title: 'Coalescing, with a record of each request',
      start: () => startBare(world, folder.path, 'recorded'),
      warmUp,
      requests,
      prepare: async (bare) => (count) => round(bare, count),
    });
    return [...ofProduct, ...ofFloor];
  } finally {
    if (world.stores === 'servers') await deleteTopics(world);
  }
}

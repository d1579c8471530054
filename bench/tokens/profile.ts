import type { Effort } from '../lib/pairs.ts';
import { profileProduct } from '../lib/profile.ts';
import type { Table } from '../lib/report.ts';
import { seedWorld, type World } from '../lib/world.ts';
import { productRequest, signing } from './contenders.ts';
import { runRound } from './measure.ts';

/** Where the product spends its time on client_credentials, once it is warm. */
export async function profile(world: World, { requests, warmUp }: Effort): Promise<Table[]> {
  await seedWorld(world, 'limits');
  return profileProduct({
    product: signing(world),
    warmUp,
    requests,
    prepare: async (server) => {
      const request = productRequest(server, world);
      return (count) => runRound({ server, request }, count);
    },
  });
}

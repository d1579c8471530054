import type { Effort } from '../lib/pairs.ts';
import { clientToken, readDemoFile } from '../lib/product.ts';
import { profileProduct } from '../lib/profile.ts';
import type { Table } from '../lib/report.ts';
import { seedWorld, type World } from '../lib/world.ts';
import { runRound } from './rounds.ts';

/** Where the product spends its time on GET /v1/accounts?limit=10, once it is warm. */
export async function profile(world: World, { requests, warmUp }: Effort): Promise<Table[]> {
  await seedWorld(world);
  return profileProduct({
    product: world,
    warmUp,
    requests,
    prepare: async (server) => {
      const token = await clientToken(server.url, readDemoFile(world.dataDir));
      return (count) => runRound({ server, token }, count);
    },
  });
}

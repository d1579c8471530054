import type { Effort } from '../lib/pairs.ts';
import { profileProduct } from '../lib/profile.ts';
import type { Table } from '../lib/report.ts';
import { cpuOfLoad } from '../lib/round.ts';
import { emptyFolder, type World } from '../lib/world.ts';
import { productOf, requestOf, startUpstream, tokenOf } from './contenders.ts';

/** Where the product spends its time on a proxied GET, once it is warm. */
export async function profile(world: World, { requests, warmUp }: Effort): Promise<Table[]> {
  await using folder = await emptyFolder();
  const upstream = await startUpstream(folder.path);
  try {
    return await profileProduct({
      product: await productOf(world, { accounts: upstream.url }),
      warmUp,
      requests,
      prepare: async (server) => {
        const asked = requestOf(server, await tokenOf(server, world));
        return (count) => cpuOfLoad(server, { ...asked, connections: 32, requests: count });
      },
    });
  } finally {
    await upstream.stop();
  }
}

import type { Effort } from '../lib/pairs.ts';
import { profileProduct } from '../lib/profile.ts';
import type { Table } from '../lib/report.ts';
import { cpuOfLoad } from '../lib/round.ts';
import { portcullisAt, productOn, requestOf } from './contenders.ts';
import type { FilledWorld } from './fill.ts';

const CONNECTIONS = 16;

/** Where the product spends its time on the page, once it is warm. */
export async function profile(world: FilledWorld, { requests, warmUp }: Effort): Promise<Table[]> {
  return profileProduct({
    product: productOn(world),
    warmUp,
    requests,
    prepare: async (server) => {
      const asked = requestOf(await portcullisAt(server, world));
      return (count) => cpuOfLoad(server, { ...asked, connections: CONNECTIONS, requests: count });
    },
  });
}

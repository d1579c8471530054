import type { Effort } from '../lib/pairs.ts';
import { profileProduct } from '../lib/profile.ts';
import type { Table } from '../lib/report.ts';
import { cpuOfLoad } from '../lib/round.ts';
import type { World } from '../lib/world.ts';

/** Where the product spends its time on GET /health, once it is warm: Express with its router is a row of the first table. */
export function profile(world: World, { requests, warmUp }: Effort): Promise<Table[]> {
  return profileProduct({
    product: world,
    warmUp,
    requests,
    prepare: async (server) => (count) =>
      cpuOfLoad(server, { url: `${server.url}/health`, method: 'GET', headers: {}, connections: 32, requests: count }),
  });
}

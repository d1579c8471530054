import type { Effort } from '../lib/pairs.ts';
import type { Server } from '../lib/product.ts';
import { profileProduct, profileServer } from '../lib/profile.ts';
import type { Table } from '../lib/report.ts';
import { cpuOfLoad } from '../lib/round.ts';
import { databasesOf, emptyFolder, type World } from '../lib/world.ts';
import { productOf, requestOf, startRecorded, startUpstream, tokenOf } from './contenders.ts';

const CONNECTIONS = 32;

/** Where the product spends its time on a proxied GET, once it is warm, and on servers Fastify with a record beside it. */
export async function profile(world: World, { requests, warmUp }: Effort): Promise<Table[]> {
  await using folder = await emptyFolder();
  const upstream = await startUpstream(folder.path);
  try {
    let token = '';
    const sends = (server: Server) => (count: number) =>
      cpuOfLoad(server, { ...requestOf(server, token), connections: CONNECTIONS, requests: count });
    const tables = await profileProduct({
      product: await productOf(world, { accounts: upstream.url }),
      warmUp,
      requests,
      prepare: async (server) => {
        token = await tokenOf(server, world);
        return sends(server);
      },
    });
    for (const databaseUrl of databasesOf([world])) {
      const peer = await profileServer({
        title: 'Fastify with a record of each request',
        start: () => startRecorded('fastify', folder.path, upstream.url, databaseUrl),
        warmUp,
        requests,
        prepare: async ({ server }) => sends(server),
      });
      tables.push(...peer);
    }
    return tables;
  } finally {
    await upstream.stop();
  }
}

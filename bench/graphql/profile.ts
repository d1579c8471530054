import type { Effort } from '../lib/pairs.ts';
import { profileProduct, profileServer } from '../lib/profile.ts';
import type { Table } from '../lib/report.ts';
import { cpuOfLoad } from '../lib/round.ts';
import { type Contender, portcullisAt, productOn, requestOf, startPeer } from './contenders.ts';
import type { FilledWorld } from './fill.ts';

const CONNECTIONS = 16;

/** Where the product spends its time on the page, once it is warm, and Mercurius with jit and a record beside it. */
export async function profile(world: FilledWorld, { requests, warmUp }: Effort): Promise<Table[]> {
  let token = '';
  const sends = (contender: Contender) => (count: number) =>
    cpuOfLoad(contender.server, { ...requestOf(contender), connections: CONNECTIONS, requests: count });
  const ofProduct = await profileProduct({
    product: productOn(world),
    warmUp,
    requests,
    prepare: async (server) => {
      const product = await portcullisAt(server, world);
      token = product.token ?? '';
      return sends(product);
    },
  });
  const ofPeer = await profileServer({
    title: 'Mercurius with jit and a record of each request',
    start: () => startPeer('mercurius-jit-recorded', world, token),
    warmUp,
    requests,
    prepare: async (peer) => sends(peer),
  });
  return [...ofProduct, ...ofPeer];
}

import type { Server } from '../lib/product.ts';
import { profileProduct, profileServer } from '../lib/profile.ts';
import type { Table } from '../lib/report.ts';
import { emptyFolder, seedWorld, type World } from '../lib/world.ts';
import { type Contender, contendersOf, startShortest, startYoga } from './contenders.ts';
import { AudienceProcess } from './measure.ts';

const SUBSCRIBERS = 1_000;
const DELIVERIES_PER_SECOND = 10_000;
const EFFORT = { warmUp: 30_000, requests: 50_000 };

/**
 * Where the product spends its time on deliveries to a thousand subscribers, once it is warm, and beside it the shortest
 * program that keeps as much; with WebSocket, which that does not speak, graphql-ws on Yoga.
 */
export async function profile(world: World, transport: 'sse' | 'ws'): Promise<Table[]> {
  await using folder = await emptyFolder();
  await seedWorld(world);
  await using audiences = new AsyncDisposableStack();
  const deliver = async (server: Server, { audience }: Contender) => {
    const listening = audiences.use(await AudienceProcess.open({ ...audience, subscribers: SUBSCRIBERS, each: false }));
    return (deliveries: number) => {
      const perSecond = DELIVERIES_PER_SECOND / SUBSCRIBERS;
      return listening.round(server, { count: deliveries / SUBSCRIBERS, perSecond });
    };
  };
  const ofProduct = await profileProduct({
    product: world,
    ...EFFORT,
    prepare: async (server) => deliver(server, (await contendersOf(world, server))[transport]),
  });
  const ofPeer = await profileServer({
    title: transport === 'sse' ? 'the shortest program that keeps as much' : 'graphql-ws on Yoga',
    start: async () => (transport === 'sse' ? startShortest(world) : (await startYoga(folder.path)).ws),
    ...EFFORT,
    prepare: async (peer) => deliver(peer.server, peer),
  });
  return [...ofProduct, ...ofPeer];
}

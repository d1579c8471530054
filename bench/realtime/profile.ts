import { profileProduct } from '../lib/profile.ts';
import type { Table } from '../lib/report.ts';
import { seedWorld, type World } from '../lib/world.ts';
import { contendersOf } from './contenders.ts';
import { AudienceProcess } from './measure.ts';

const SUBSCRIBERS = 1_000;
const DELIVERIES_PER_SECOND = 10_000;

/** Where the product spends its time on deliveries to a thousand subscribers, once it is warm. */
export async function profile(world: World, transport: 'sse' | 'ws'): Promise<Table[]> {
  await seedWorld(world);
  await using audiences = new AsyncDisposableStack();
  return await profileProduct({
    product: world,
    warmUp: 30_000,
    requests: 50_000,
    prepare: async (server) => {
      const { audience } = (await contendersOf(world, server))[transport];
      const listening = audiences.use(
        await AudienceProcess.open({ ...audience, subscribers: SUBSCRIBERS, each: false }),
      );
      return (deliveries) => {
        const perSecond = DELIVERIES_PER_SECOND / SUBSCRIBERS;
        return listening.round(server, { count: deliveries / SUBSCRIBERS, perSecond });
      };
    },
  });
}

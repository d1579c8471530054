import { parseArgs } from 'node:util';
import { type DeliveryEffort, deliver } from './delivery/measure.ts';
import { startProduct } from './lib/product.ts';
import { print, type Table } from './lib/report.ts';
import { onEachStores, type Stores, seedWorld, storesNamed } from './lib/world.ts';

const EFFORT = { notifications: 500, perSecond: 50 };
const SUBSCRIBERS = [1, 50];
const WARM_UP: DeliveryEffort = { notifications: 100, perSecond: 50, subscribers: 5 };

/** Measures the way of an event from the webhook's 200 to its subscribers, on each of the stores. */
export async function measureDelivery(
  kinds: readonly Stores[],
  effort: Omit<DeliveryEffort, 'subscribers'> = EFFORT,
): Promise<Table> {
  const rows: string[][] = [];
  await onEachStores(kinds, async (world, title) => {
    await seedWorld(world);
    const product = await startProduct(world);
    try {
      await deliver(product, world.dataDir, WARM_UP);
      for (const subscribers of SUBSCRIBERS) {
        const { p50, p99, highest } = await deliver(product, world.dataDir, { ...effort, subscribers });
        rows.push([title, `${subscribers}`, ...[p50, p99, highest].map((ms) => ms.toFixed(1))]);
      }
    } finally {
      await product.stop();
    }
  });
  return { head: ['from the 200 to the receipt', 'subscribers', 'p50, ms', 'p99, ms', 'highest, ms'], rows };
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      stores: { type: 'string', multiple: true },
      notifications: { type: 'string', default: `${EFFORT.notifications}` },
      'per-second': { type: 'string', default: `${EFFORT.perSecond}` },
    },
  });
  const effort = { notifications: Number(values.notifications), perSecond: Number(values['per-second']) };
  print(await measureDelivery(storesNamed(values.stores), effort));
}

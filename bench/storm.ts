import { parseArgs } from 'node:util';
import { startProduct } from './lib/product.ts';
import { print, type Table } from './lib/report.ts';
import { onEachStores, type Stores, seedWorld, storesNamed } from './lib/world.ts';
import { calm, storm } from './storm/measure.ts';
import type { Waits } from './storm/probe.ts';

interface Effort {
  durationMs: number;
  /** How many callers log in at once, in each storm: the first fits into the queue, the second does not. */
  logins: readonly number[];
}

const EFFORT: Effort = { durationMs: 5_000, logins: [64, 128] };

/** Measures GET /health while nobody logs in and in storms of logins, on each of the stores. */
export async function measureStorm(kinds: readonly Stores[], { durationMs, logins }: Effort = EFFORT): Promise<Table> {
  const rows: string[][] = [];
  await onEachStores(kinds, async (world, title) => {
    await seedWorld(world);
    const product = await startProduct(world);
    try {
      await calm(product, durationMs);
      rows.push([title, '0', ...waits(await calm(product, durationMs)), '', '', '']);
      for (const connections of logins) {
        const { health, right, wrong, refused } = await storm(product, world.dataDir, { connections, durationMs });
        rows.push([title, `${connections}`, ...waits(health), right.toFixed(1), wrong.toFixed(1), `${refused}`]);
      }
    } finally {
      await product.stop();
    }
  });
  const head = [
    'GET /health in a storm',
    'logins at once',
    'p50, ms',
    'p99, ms',
    'highest, ms',
    'right /s',
    'wrong /s',
    '503',
  ];
  return { head, rows };
}

function waits({ p50, p99, highest }: Waits): string[] {
  return [p50, p99, highest].map((ms) => ms.toFixed(1));
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      stores: { type: 'string', multiple: true },
      seconds: { type: 'string', default: `${EFFORT.durationMs / 1000}` },
      logins: { type: 'string', multiple: true },
    },
  });
  const logins = values.logins?.map(Number) ?? EFFORT.logins;
  print(await measureStorm(storesNamed(values.stores), { durationMs: Number(values.seconds) * 1000, logins }));
}

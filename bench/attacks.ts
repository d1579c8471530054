import { parseArgs } from 'node:util';
import type { Attack } from '../test/support/graphql/attacks/attack.ts';
import { launch, type Target } from '../test/support/graphql/attacks/launch.ts';
import { ATTACKS } from '../test/support/graphql/attacks.ts';
import { costOf } from './attacks/cost.ts';
import { clientToken, readDemoFile, type Server, startProduct } from './lib/product.ts';
import { print, type Table, tell } from './lib/report.ts';
import { onEachStores, type Stores, seedWorld, storesNamed, titleOf } from './lib/world.ts';

const EFFORT = { rounds: 5 };
const SHOWN = 10;

interface Cost {
  attack: Attack;
  cpuMs: number;
}

/** Sends each attack to the product several times, and shows the dearest in CPU of the server: one table for each of the stores. */
export async function measureAttacks(kinds: readonly Stores[], { rounds } = EFFORT): Promise<Table[]> {
  const tables: Table[] = [];
  await onEachStores(kinds, async (world) => {
    await seedWorld(world);
    const product = await startProduct(world);
    try {
      const target = { url: product.url, token: await clientToken(product.url, readDemoFile(world.dataDir)) };
      tables.push(tableOf(world.stores, await costsOf(product, target, rounds)));
    } finally {
      await product.stop();
    }
  });
  return tables;
}

async function costsOf(product: Server, target: Target, rounds: number): Promise<Cost[]> {
  // What runs operations is loaded with the first of them, and compiled with the next ones.
  for (const attack of ATTACKS) await launch(attack, target);
  const costs: Cost[] = [];
  for (const [at, attack] of ATTACKS.entries()) {
    if (at % 50 === 0) tell(`attack ${at} of ${ATTACKS.length} …`);
    costs.push({ attack, cpuMs: await costOf(product.pid, () => launch(attack, target), rounds) });
  }
  return costs.toSorted((a, b) => b.cpuMs - a.cpuMs);
}

function tableOf(stores: Stores, costs: readonly Cost[]): Table {
  const head = [`attacks on /graphql, ${titleOf(stores)}`, 'CPU, ms'];
  const shown = costs.slice(0, SHOWN).map(({ attack, cpuMs }) => [`${attack.group}: ${attack.name}`, cpuMs.toFixed(0)]);
  const middle = costs[Math.floor(costs.length / 2)]?.cpuMs ?? 0;
  return { head, rows: [...shown, [`the median of ${costs.length}`, middle.toFixed(0)]] };
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      stores: { type: 'string', multiple: true },
      rounds: { type: 'string', default: `${EFFORT.rounds}` },
    },
  });
  const tables = await measureAttacks(storesNamed(values.stores ?? ['servers']), { rounds: Number(values.rounds) });
  for (const table of tables) print(table);
}

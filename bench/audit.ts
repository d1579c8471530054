import { parseArgs } from 'node:util';
import { compare, type Result, WORLDS } from './audit/measure.ts';
import { profile } from './audit/profile.ts';
import { cellsOf, type Effort } from './lib/pairs.ts';
import { print, type Table } from './lib/report.ts';
import { onAllStores, onEachStores, type Stores, storesNamed, titleOf } from './lib/world.ts';

const EFFORT: Effort = { pairs: 7, requests: 20_000, warmUp: 30_000 };

/** Measures GET /health of the product with and without its audit, beside bare servers. */
export async function measureAudit(stores: readonly Stores[], effort: Effort = EFFORT): Promise<Table[]> {
  const tables: Table[] = [];
  for (const kind of stores) {
    await onAllStores(
      Array.from({ length: WORLDS }, () => kind),
      async (worlds) => {
        tables.push(tableOf(`GET /health, 32 connections; ${titleOf(kind)}`, await compare(worlds, effort)));
      },
    );
  }
  return tables;
}

function tableOf(title: string, results: readonly Result[]): Table {
  return {
    head: [title, 'CPU, µs', '× bare Express', 'aim', 'of the pairs', 'p50, ms', 'p99, ms', 'idle, ms/s'],
    rows: results.map(({ contender: { title: name, aim }, idleMs, ...summary }) => {
      const [cpuUs = '', ratio = '', ...others] = cellsOf(summary);
      return [name, cpuUs, ratio, aim === undefined ? '' : `at most ${aim}`, ...others, idleMs.toFixed(0)];
    }),
  };
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      stores: { type: 'string', multiple: true, default: ['servers'] },
      pairs: { type: 'string', default: `${EFFORT.pairs}` },
      requests: { type: 'string', default: `${EFFORT.requests}` },
      profile: { type: 'boolean', default: false },
    },
  });
  const stores = storesNamed(values.stores);
  const effort = { ...EFFORT, pairs: Number(values.pairs), requests: Number(values.requests) };
  if (values.profile) await onEachStores(stores, async (world) => (await profile(world, effort)).forEach(print));
  else (await measureAudit(stores, effort)).forEach(print);
}

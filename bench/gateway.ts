import { parseArgs } from 'node:util';
import { besideFrozen } from './gateway/frozen.ts';
import { compare, type Result } from './gateway/measure.ts';
import { profile } from './gateway/profile.ts';
import { cellsOf, type Effort } from './lib/pairs.ts';
import { print, type Table } from './lib/report.ts';
import { emptyFolder, onAllStores, onEachStores, type Stores, storesNamed } from './lib/world.ts';

const EFFORT: Effort = { pairs: 7, requests: 10_000, warmUp: 30_000 };

/** Measures a proxied GET of the product on each of the stores beside its peers, all in one run. */
export async function measureGateway(stores: readonly Stores[], effort: Effort = EFFORT): Promise<Table> {
  await using folder = await emptyFolder();
  const results: Result[] = [];
  await onAllStores(stores, async (worlds) => {
    results.push(...(await compare(worlds, folder.path, effort)));
  });
  return {
    head: [
      'proxied GET, HS256, client limit, 32 connections',
      'CPU, µs',
      '× bare',
      'of the pairs',
      'p50, ms',
      'p99, ms',
      'idle, ms/s',
    ],
    rows: results.map(({ contender, idleMs, ...summary }) => [contender.title, ...cellsOf(summary), idleMs.toFixed(0)]),
  };
}

/** What requests of the product take while another of its services has frozen. */
export async function measureFrozen(stores: readonly Stores[], effort: Effort = EFFORT): Promise<Table[]> {
  const tables: Table[] = [];
  await onEachStores(stores, async (world) => void tables.push(await besideFrozen(world, effort)));
  return tables;
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      stores: { type: 'string', multiple: true },
      pairs: { type: 'string', default: `${EFFORT.pairs}` },
      requests: { type: 'string', default: `${EFFORT.requests}` },
      frozen: { type: 'boolean', default: false },
      profile: { type: 'boolean', default: false },
    },
  });
  const stores = storesNamed(values.stores);
  const effort = { ...EFFORT, pairs: Number(values.pairs), requests: Number(values.requests) };
  if (values.profile) await onEachStores(stores, async (world) => (await profile(world, effort)).forEach(print));
  else if (values.frozen) (await measureFrozen(stores, effort)).forEach(print);
  else print(await measureGateway(stores, effort));
}

import { parseArgs } from 'node:util';
import type { Effort } from './lib/pairs.ts';
import { print, type Table } from './lib/report.ts';
import { emptyFolder, onAllStores, onEachStores, type Stores, storesNamed } from './lib/world.ts';
import { compare } from './tokens/measure.ts';
import { profile } from './tokens/profile.ts';
import { tablesOf } from './tokens/tables.ts';

const EFFORT: Effort = { pairs: 7, requests: 4_000, warmUp: 40_000 };

/** Measures client_credentials of the product on each of the stores beside its peers, all in one run. */
export async function measureTokens(stores: readonly Stores[], effort: Effort = EFFORT): Promise<Table[]> {
  await using folder = await emptyFolder();
  const tables: Table[] = [];
  await onAllStores(stores, async (worlds) => {
    tables.push(...tablesOf(await compare(worlds, folder.path, effort)));
  });
  return tables;
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      stores: { type: 'string', multiple: true },
      pairs: { type: 'string', default: `${EFFORT.pairs}` },
      requests: { type: 'string', default: `${EFFORT.requests}` },
      profile: { type: 'boolean', default: false },
    },
  });
  const stores = storesNamed(values.stores);
  const effort = { ...EFFORT, pairs: Number(values.pairs), requests: Number(values.requests) };
  if (values.profile) await onEachStores(stores, async (world) => (await profile(world, effort)).forEach(print));
  else (await measureTokens(stores, effort)).forEach(print);
}

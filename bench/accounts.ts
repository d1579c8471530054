import { parseArgs } from 'node:util';
import { measureDeepPages } from './accounts/deep-pages.ts';
import { compare, type Effort } from './accounts/measure.ts';
import { profile } from './accounts/profile.ts';
import { print, type Table } from './lib/report.ts';
import { onEachStores, type Stores, storesNamed } from './lib/world.ts';

const EFFORT: Effort = { pairs: 7, requests: 4_000, warmUp: 3_000 };

/** Measures GET /v1/accounts?limit=10 against the bare route on each of the stores. */
export async function measureAccounts(stores: readonly Stores[], effort: Effort = EFFORT): Promise<Table> {
  const rows: string[][] = [];
  await onEachStores(stores, async (world, name) => {
    const { product, bare, ratio, lowest, highest } = await compare(world, effort);
    const range = `${lowest.toFixed(2)} to ${highest.toFixed(2)}`;
    rows.push([name, product.toFixed(0), bare.toFixed(0), ratio.toFixed(2), range, 'at most 2']);
  });
  const head = ['CPU of a page of accounts', 'Portcullis, µs', 'bare Express, µs', 'ratio', 'of the pairs', 'aim'];
  return { head, rows };
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      stores: { type: 'string', multiple: true },
      pairs: { type: 'string', default: `${EFFORT.pairs}` },
      requests: { type: 'string', default: `${EFFORT.requests}` },
      profile: { type: 'boolean', default: false },
      deep: { type: 'boolean', default: false },
      accounts: { type: 'string', default: '1000000' },
    },
  });
  const stores = storesNamed(values.stores);
  const effort = { ...EFFORT, pairs: Number(values.pairs), requests: Number(values.requests) };
  if (values.deep) print(await measureDeepPages(Number(values.accounts), effort));
  else if (values.profile) await onEachStores(stores, async (world) => (await profile(world, effort)).forEach(print));
  else print(await measureAccounts(stores, effort));
}

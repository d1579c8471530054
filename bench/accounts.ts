import { parseArgs } from 'node:util';
import { measureDeepPages } from './accounts/deep-pages.ts';
import { compare } from './accounts/measure.ts';
import { profile } from './accounts/profile.ts';
import { cellsOf, type Effort, summaryOf } from './lib/pairs.ts';
import { print, type Table } from './lib/report.ts';
import { onEachStores, type Stores, storesNamed } from './lib/world.ts';

const EFFORT: Effort = { pairs: 7, requests: 4_000, warmUp: 3_000 };

/** Measures GET /v1/accounts?limit=10 against the bare route on each of the stores. */
export async function measureAccounts(stores: readonly Stores[], effort: Effort = EFFORT): Promise<Table> {
  const rows: string[][] = [];
  await onEachStores(stores, async (world) => {
    for (const { title, rounds } of await compare(world, effort)) {
      rows.push([title, ...cellsOf(summaryOf(rounds)), title.startsWith('Portcullis') ? 'at most 2' : '']);
    }
  });
  const head = ['GET /v1/accounts?limit=10, 8 connections', 'CPU, µs', '× bare', 'of the pairs', 'p50, ms', 'p99, ms'];
  return { head: [...head, 'aim'], rows };
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

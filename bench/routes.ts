import { parseArgs } from 'node:util';
import type { Effort } from './lib/pairs.ts';
import { print, type Table } from './lib/report.ts';
import { storesNamed } from './lib/world.ts';
import { measureMatchers, measureReading } from './routes/matchers-table.ts';
import { measureProduct } from './routes/product.ts';

const EFFORT: Effort = { pairs: 7, requests: 10_000, warmUp: 30_000 };
const COUNTS = [10, 1_000, 10_000];

/** Measures what the number of endpoints costs: a match beside peers, the start, and a request of the whole product. */
export async function measureRoutes(effort: Effort = EFFORT): Promise<Table[]> {
  return [...(await measureTables(effort)), await measureProduct('servers', COUNTS, effort)];
}

async function measureTables({ pairs }: Effort): Promise<Table[]> {
  return [await measureMatchers(COUNTS, pairs), await measureReading(COUNTS, pairs)];
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      stores: { type: 'string', multiple: true, default: ['servers'] },
      pairs: { type: 'string', default: `${EFFORT.pairs}` },
      requests: { type: 'string', default: `${EFFORT.requests}` },
    },
  });
  const effort = { ...EFFORT, pairs: Number(values.pairs), requests: Number(values.requests) };
  (await measureTables(effort)).forEach(print);
  for (const stores of storesNamed(values.stores)) print(await measureProduct(stores, COUNTS, effort));
}

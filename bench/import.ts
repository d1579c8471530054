import { parseArgs } from 'node:util';
import { compareImports, type Effort } from './import/measure.ts';
import { profileImport } from './import/profile.ts';
import { print, type Table } from './lib/report.ts';
import { median } from './lib/statistics.ts';
import { onEachStores } from './lib/world.ts';

const EFFORT: Effort = { rows: 100_000, pairs: 3 };

/** Measures `users import` beside COPY with the same checks in SQL, on PostgreSQL. */
export async function measureImport(effort: Effort = EFFORT): Promise<Table> {
  const rows: string[][] = [];
  await onEachStores(['servers'], async (world) => {
    const pairs = await compareImports(world, effort);
    const perSecond = (ms: number) => Math.round((effort.rows * 1_000) / ms).toLocaleString('en');
    const ratios = pairs.map(({ productMs, sqlMs }) => productMs / sqlMs);
    rows.push([
      effort.rows.toLocaleString('en'),
      perSecond(median(pairs.map(({ productMs }) => productMs))),
      perSecond(median(pairs.map(({ sqlMs }) => sqlMs))),
      median(ratios).toFixed(2),
      `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`,
      Math.max(...pairs.map(({ residentMb }) => residentMb)).toFixed(0),
    ]);
  });
  const head = [
    'rows',
    'users import, rows a second',
    'COPY and SQL, rows a second',
    'time, ratio',
    'of the pairs',
    'most memory, MB',
  ];
  return { head, rows };
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      rows: { type: 'string', default: `${EFFORT.rows}` },
      pairs: { type: 'string', default: `${EFFORT.pairs}` },
      profile: { type: 'boolean', default: false },
    },
  });
  const effort = { rows: Number(values.rows), pairs: Number(values.pairs) };
  if (values.profile)
    await onEachStores(['servers'], async (world) => (await profileImport(world, effort)).forEach(print));
  else print(await measureImport(effort));
}

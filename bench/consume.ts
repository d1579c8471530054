import { parseArgs } from 'node:util';
import { consumeEmbedded } from './consume/embedded.ts';
import { type Consumed, consumeFromKafka, type Effort } from './consume/measure.ts';
import { profile } from './consume/profile.ts';
import { watchOthers } from './lib/process-stats.ts';
import { print, type Table, tell } from './lib/report.ts';
import { onEachStores, type Stores, storesNamed } from './lib/world.ts';

/** The embedded database is one connection: what waits there is applied before anybody is answered. */
const EFFORT: Record<Stores, Omit<Effort, 'transactions'>> = {
  embedded: { notifications: 8_000, warmUp: 0.25 },
  servers: { notifications: 40_000, warmUp: 0.25 },
};
const TABLES = [10_000, 1_000_000];

/** Measures how fast notifications are applied that wait in the topics, by how many transactions there are. */
export async function measureConsume(kinds: readonly Stores[], tables: readonly number[] = TABLES): Promise<Table> {
  const rows: string[][] = [];
  for (const kind of kinds) {
    let fewest: Consumed | undefined;
    for (const transactions of tables) {
      await onEachStores([kind], async (world, title) => {
        const consume = kind === 'embedded' ? consumeEmbedded : consumeFromKafka;
        const consumed = await consume(world, { ...EFFORT[kind], transactions });
        fewest ??= consumed;
        rows.push([title, transactions.toLocaleString('en'), ...cellsOf(consumed, fewest)]);
      });
    }
  }
  return {
    head: [
      'notifications from both topics',
      'transactions',
      'applied /s',
      'of the fewest',
      'CPU of the product, µs',
      'of PostgreSQL, µs',
    ],
    rows,
  };
}

function cellsOf({ perSecond, productUs, postgresUs }: Consumed, fewest: Consumed): string[] {
  return [
    perSecond.toFixed(0),
    (perSecond / fewest.perSecond).toFixed(2),
    productUs.toFixed(0),
    postgresUs?.toFixed(0) ?? "in the product's",
  ];
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      stores: { type: 'string', multiple: true },
      transactions: { type: 'string', multiple: true },
      profile: { type: 'boolean', default: false },
    },
  });
  const stores = storesNamed(values.stores);
  const tables = values.transactions?.map(Number) ?? TABLES;
  const effort: Effort = { ...EFFORT.servers, transactions: tables[0] ?? 0 };
  const busy = watchOthers();
  if (values.profile) await onEachStores(['servers'], async (world) => (await profile(world, effort)).forEach(print));
  else print(await measureConsume(stores, tables));
  tell(`others took ${(busy() * 100).toFixed(0)} % of the machine`);
}

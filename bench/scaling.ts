import { parseArgs } from 'node:util';
import { commitNow, machine } from './lib/machine.ts';
import { runEach } from './lib/pairs.ts';
import { watchOthers } from './lib/process-stats.ts';
import { markdown, print, type Table, tell, writeSection } from './lib/report.ts';
import { onServers } from './lib/world.ts';
import { measureClients } from './scaling/clients.ts';
import type { Curve, Effort } from './scaling/rounds.ts';
import { measureSubscribers } from './scaling/subscribers.ts';
import { measureTenants } from './scaling/tenants.ts';
import { measureTransactions } from './scaling/transactions.ts';

const CURVES: Record<string, Curve> = {
  clients: measureClients,
  tenants: measureTenants,
  transactions: measureTransactions,
  subscribers: measureSubscribers,
};

const EFFORT: Effort = {
  rounds: 3,
  requests: 500,
  clients: [10, 100, 1_000],
  tenants: [1, 1_000],
  transactions: [1_000, 10_000, 100_000, 1_000_000],
  subscribers: [1, 10, 100, 1_000, 10_000],
};
/** For a try: whether it runs, and not what it measures. */
const SMALL: Effort = {
  ...{ rounds: 1, requests: 100, clients: [10, 100], tenants: [1, 20] },
  ...{ transactions: [1_000, 10_000], subscribers: [1, 10, 100] },
};

/** Measures the curves that are named, or all, and prints the tables of each as soon as it has them. */
export async function measureScaling(names: readonly string[], effort: Effort): Promise<Map<string, readonly Table[]>> {
  const unknown = names.filter((name) => !Object.hasOwn(CURVES, name));
  if (unknown.length > 0) throw new Error(`no curve ${unknown.join(', ')}: one of ${Object.keys(CURVES).join(', ')}`);
  const asked = Object.keys(CURVES).filter((name) => names.length === 0 || names.includes(name));
  const measured = new Map<string, readonly Table[]>();
  await onServers(async (open) => {
    await runEach(
      asked.map((title) => ({ title })),
      async ({ title }) => {
        const [startedAt, busy] = [performance.now(), watchOthers()];
        const tables = await (CURVES[title] as Curve)(open, effort);
        measured.set(title, tables);
        for (const table of tables) {
          print(table);
          process.stdout.write('\n');
        }
        const seconds = ((performance.now() - startedAt) / 1_000).toFixed(0);
        tell(`${title}: ${seconds} s; others took ${(busy() * 100).toFixed(0)} % of the machine`);
      },
    );
  });
  return measured;
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      rounds: { type: 'string' },
      transactions: { type: 'string', multiple: true },
      small: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
    },
  });
  const usual = values.small ? SMALL : EFFORT;
  const effort = {
    ...usual,
    rounds: Number(values.rounds ?? usual.rounds),
    transactions: values.transactions?.map(Number) ?? usual.transactions,
  };
  const [commit, startedAt, busy] = [commitNow(), performance.now(), watchOthers()];
  const measured = await measureScaling(positionals, effort);
  const minutes = ((performance.now() - startedAt) / 60_000).toFixed(0);
  const measuredOn = `${machine(commit, busy())}\n- ${minutes} minutes in all`;
  process.stdout.write(`${measuredOn}\n`);
  if (measured.size < (positionals.length || Object.keys(CURVES).length)) process.exitCode = 1;
  if (values.write && measured.size < Object.keys(CURVES).length)
    throw new Error('docs/scaling.md is not written: it has all curves of one run');
  if (values.write) {
    writeSection('machine', measuredOn, 'scaling.md');
    for (const [name, tables] of measured) writeSection(name, tables.map(markdown).join('\n\n'), 'scaling.md');
  }
}

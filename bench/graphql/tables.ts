import type { Table } from '../lib/report.ts';
import { median } from '../lib/statistics.ts';
import type { Kind } from './contenders.ts';
import type { Comparison, Result } from './measure.ts';

/** What the product's CPU is held to, as a multiple of a peer's; of Mercurius with jit nothing is asked. */
const AIMS: Partial<Record<Kind, { text: string; holds(ratio: number): boolean }>> = {
  bare: { text: 'at most 2', holds: (ratio) => ratio <= 2 },
  mercurius: { text: 'below 1', holds: (ratio) => ratio < 1 },
  apollo: { text: 'below 1', holds: (ratio) => ratio < 1 },
  postgraphile: { text: 'below 1', holds: (ratio) => ratio < 1 },
};

/** What the page costs each contender, and what the product is held to. */
export function tablesOf(comparisons: readonly Comparison[]): Table[] {
  return [...comparisons.map(costs), aims(comparisons)];
}

function costs({ connections, results }: Comparison): Table {
  const title = `accounts(first: 50) with wallets, ${connections} connections`;
  return {
    head: [
      title,
      'CPU, µs',
      'Portcullis ÷ it',
      'of the pairs',
      'requests/s',
      'p50, ms',
      'p99, ms',
      'PostgreSQL, µs',
      'idle, ms/s',
    ],
    rows: results.map(({ contender, cpuUs, productBy, perSecond, p50, p99, postgresUs, idleMs }) => [
      contender.title,
      cpuUs.toFixed(0),
      ...(contender.kind === 'portcullis' ? ['', ''] : [median(productBy).toFixed(2), rangeOf(productBy)]),
      perSecond.toFixed(0),
      p50.toFixed(1),
      p99.toFixed(1),
      postgresUs.toFixed(0),
      idleMs.toFixed(0),
    ]),
  };
}

function aims(comparisons: readonly Comparison[]): Table {
  const kinds = Object.keys(AIMS) as Kind[];
  const rows = kinds.flatMap((kind) =>
    comparisons.flatMap(({ connections, results }) => {
      const result = results.find(({ contender }) => contender.kind === kind);
      return result ? [aimRow(result, connections)] : [];
    }),
  );
  return { head: ['Portcullis beside', 'connections', 'CPU, × it', 'aim', 'holds', 'requests/s, × it'], rows };
}

function aimRow({ contender: { kind, title }, productBy, perSecondBy }: Result, connections: number): string[] {
  const ratio = median(productBy);
  const aim = AIMS[kind];
  return [
    title,
    `${connections}`,
    ratio.toFixed(2),
    aim?.text ?? '',
    aim?.holds(ratio) ? 'yes' : 'no',
    median(perSecondBy).toFixed(2),
  ];
}

function rangeOf(ratios: readonly number[]): string {
  return `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`;
}

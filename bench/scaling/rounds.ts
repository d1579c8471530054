import { type Table, tell } from '../lib/report.ts';
import { median } from '../lib/statistics.ts';
import type { World } from '../lib/world.ts';

/** How much is measured. */
export interface Effort {
  rounds: number;
  /** The requests of a round. */
  requests: number;
  clients: readonly number[];
  tenants: readonly number[];
  transactions: readonly number[];
  subscribers: readonly number[];
}

/** Measures a curve on stores that it opens. */
export type Curve = (open: () => Promise<World>, effort: Effort) => Promise<Table[]>;

/** What one round of a size has cost, by the unit's name; a cost that a size is too small for is left out. */
export type Costs = Record<string, number | undefined>;

/**
 * Measures all sizes in each round, forwards and backwards in turn, after a round that warms up: what slows the machine
 * for a while slows all sizes.
 */
export async function measureSizes<Size>(
  title: string,
  sizes: readonly Size[],
  rounds: number,
  measure: (size: Size, round: number) => Promise<Costs>,
): Promise<Map<Size, Costs[]>> {
  const measured = new Map<Size, Costs[]>(sizes.map((size) => [size, []]));
  for (let round = 0; round <= rounds; round += 1) {
    tell(`${title}: ${round === 0 ? 'warming up' : `round ${round} of ${rounds}`} …`);
    for (const size of round % 2 === 0 ? sizes : sizes.toReversed()) {
      const costs = await measure(size, round);
      if (round > 0) measured.get(size)?.push(costs);
    }
  }
  return measured;
}

/** A row for each size: the median of each cost, and the median of its ratios to the first size in the same round. */
export function rowsOf<Size>(measured: ReadonlyMap<Size, readonly Costs[]>, names: readonly string[], digits = 0) {
  const [first = []] = measured.values();
  return Array.from(measured, ([size, rounds]) => {
    const cells = names.flatMap((name) => {
      const values = rounds.flatMap((costs) => costs[name] ?? []);
      const ratios = rounds.flatMap((costs, round) => {
        const [value, base] = [costs[name], first[round]?.[name]];
        return value === undefined || base === undefined ? [] : [value / base];
      });
      if (values.length === 0) return ['–', '–'];
      return [median(values).toFixed(digits), ratios.length === 0 ? '–' : rangeOf(ratios)];
    });
    return [typeof size === 'number' ? size.toLocaleString('en') : String(size), ...cells];
  });
}

/** A row for one cost: its median for each size, and the median of the ratios of the last size to the first. */
export function wideRowOf<Size>(title: string, measured: ReadonlyMap<Size, readonly Costs[]>, name: string): string[] {
  const rounds = [...measured.values()].map((costs) => costs.map((cost) => cost[name] ?? Number.NaN));
  const [first = [], last = []] = [rounds[0], rounds.at(-1)];
  const ratios = last.map((value, round) => value / (first[round] ?? Number.NaN));
  return [title, ...rounds.map((values) => median(values).toFixed(0)), rangeOf(ratios)];
}

function rangeOf(ratios: readonly number[]): string {
  const [least, most] = [Math.min(...ratios), Math.max(...ratios)];
  return `${median(ratios).toFixed(2)} (${least.toFixed(2)} to ${most.toFixed(2)})`;
}

/** The head of a table of `rowsOf`. */
export function headOf(title: string, names: readonly string[]): string[] {
  return [title, ...names.flatMap((name) => [name, '÷ first'])];
}

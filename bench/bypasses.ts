import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { measurePairs, type Variant } from './bypasses/measure.ts';
import { SCENES } from './bypasses/scenes.ts';
import { ROOT } from './lib/product.ts';
import { print, type Table, tell } from './lib/report.ts';
import { boundOf, median } from './lib/statistics.ts';

const PAIRS = 30;
const SWAP = join(import.meta.dirname, 'bypasses/swap.ts');

/** Each way around a library, by its file, and the row that it is to be worth a tenth of. */
const BYPASSES: Record<string, keyof typeof SCENES> = {
  'kafka-encoding': 'webhook',
  'kafka-timers': 'idle',
  'jwt-signer': 'token',
  'compiled-operations': 'graphql',
  'prepared-query': 'graphql',
  'module-resolution': 'start',
};

/** The names of all ways around a library. */
export const NAMES = Object.keys(BYPASSES);

/** What resolves imports before `swap.ts` could see them. */
const UNSEEN = 'module-resolution';

/** Starts the product with the library's own way in the place of these. */
function swapping(...names: readonly string[]): Variant {
  const swapped = names.map((name) => [
    join(ROOT, `src/lib/fast/${name}.ts`),
    join(ROOT, `test/support/fast/library/${name}.ts`),
  ]);
  return { nodeArgs: ['--import', SWAP], env: { SWAPPED: JSON.stringify(Object.fromEntries(swapped)) } };
}

/** Measures what a row takes with each way around a library, beside the library's own way of its contract test. */
export async function measureBypasses(names: readonly string[], pairs: number): Promise<Table> {
  const rows: string[][] = [];
  for (const name of names) {
    const row = BYPASSES[name];
    if (row === undefined) throw new Error(`no bypass ${name}: one of ${NAMES.join(', ')}`);
    tell(`${name}, ${row} …`);
    const other = swapping(name, UNSEEN);
    // Both sides resolve imports as Node does, or `swap.ts` would not see what it is to replace.
    const own = name === UNSEEN ? {} : swapping(UNSEEN);
    const measured = await measurePairs(SCENES[row], { own, other }, pairs);
    const gain = boundOf(measured.map(({ own: ours, other: library }) => library - ours));
    const ownUs = median(measured.map((pair) => pair.own));
    const us = (value: number) => value.toFixed(1);
    rows.push([
      ...[name, row, us(ownUs), us(ownUs + gain.median), us(gain.median), us(gain.lower)],
      share(gain.lower, ownUs),
    ]);
  }
  return {
    head: ['bypass', 'row', 'with it, µs', "the library's way, µs", 'gain, µs', 'at least, µs', 'of the row'],
    rows,
  };
}

function share(part: number, whole: number): string {
  return `${((100 * part) / whole).toFixed(0)} %`;
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    options: { pairs: { type: 'string', default: `${PAIRS}` } },
    allowPositionals: true,
  });
  print(await measureBypasses(positionals.length > 0 ? positionals : NAMES, Number(values.pairs)));
}

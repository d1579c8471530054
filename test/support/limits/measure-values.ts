import fc from 'fast-check';
import { heapWeight } from '../../../src/lib/heap-weight.ts';

/**
 * Parses so many generated JSON texts (`measure-values.ts COUNT`, with `--expose-gc`), and tells which value takes the most
 * of the heap for its weight.
 */
const COUNT = Number(process.argv[2]);
/** Smaller values are lost in what the collector leaves. */
const LENGTH = 4_000;
const collect = () => {
  globalThis.gc?.();
  globalThis.gc?.();
};
let names = 0;
function fresh(): string {
  names += 1;
  return `n${names}`;
}

const scalar = fc.oneof(
  fc.integer({ min: -9, max: 9 }).map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  fc.constantFrom('true', 'null', '""', '"a"', '[]', '{}', '[1]', '[[]]', '"\\u0041\\n"'),
  fc.string({ maxLength: 60 }).map((text) => JSON.stringify(text)),
  fc.string({ unit: 'grapheme', maxLength: 30 }).map((text) => JSON.stringify(text)),
);
/** How an item of a list is made of scalars. */
const item = fc.oneof(
  fc.constant((parts: string[]) => parts[0] ?? '0'),
  fc.constant((parts: string[]) => `[${parts.join()}]`),
  fc.constant((parts: string[]) => `{${parts.map((part, at) => `"m${at}":${part}`).join()}}`),
  fc.constant((parts: string[]) => `{${parts.map((part) => `"${fresh()}":${part}`).join()}}`),
  fc.constant((parts: string[]) => parts.reduce((inner, part) => `[${part},{"deep":${inner}}]`, '1')),
);
const value = fc.record({
  parts: fc.array(scalar, { minLength: 1, maxLength: 8 }),
  make: item,
  isMap: fc.boolean(),
});

let worst = { ratio: 0, text: '' };
let measured = 0;
for (const { parts, make, isMap } of fc.sample(value, { numRuns: COUNT, seed: 50 })) {
  const text = () => {
    const items = Array.from({ length: LENGTH }, () => (isMap ? `"${fresh()}":${make(parts)}` : make(parts)));
    return isMap ? `{${items.join()}}` : `[${items.join()}]`;
  };
  const json = [text(), text()];
  collect();
  const before = process.memoryUsage().heapUsed;
  const values = json.map((one) => JSON.parse(one));
  collect();
  const taken = process.memoryUsage().heapUsed - before;
  const ratio = taken / values.reduce((sum, one) => sum + heapWeight(one), 0);
  measured += 1;
  if (ratio > worst.ratio) worst = { ratio, text: (json[0] ?? '').slice(0, 200) };
}
process.stdout.write(JSON.stringify({ measured, worst }));

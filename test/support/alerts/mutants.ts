import type { Alert } from '../observability/documents.ts';
import { scaledDurations } from './durations.ts';

const NUMBER = /(?<![\w.$"[])\d+(?:\.\d+)?(?![\w."\]])/g;
const FACTORS = [0.7, 1.3];
/** In the place of 0: more than happens at once, and no state. */
const NO_ZERO = 1.5;

/** An alert with one number or duration changed. */
export interface Mutant {
  name: string;
  mutant: Alert;
}

/** The alert with each of its numbers, with its ranges, and with how long it waits, three tenths smaller or larger; a 0 becomes another number. */
export function mutants(rule: Alert): Mutant[] {
  const { alert, expr } = rule;
  const numbers = [...expr.matchAll(NUMBER)].flatMap(({ 0: number, index }) =>
    (Number(number) === 0 ? [NO_ZERO] : FACTORS.map((factor) => Number(number) * factor)).map((other) => ({
      name: `${alert}: ${other} for ${number} at ${index}`,
      mutant: { ...rule, expr: `${expr.slice(0, index)}${other}${expr.slice(index + number.length)}` },
    })),
  );
  const durations = FACTORS.flatMap((factor) => {
    const scaled = scaledDurations(rule, factor);
    return [
      { name: `${alert}: ranges × ${factor}`, mutant: { ...rule, expr: scaled.expr } },
      { name: `${alert}: for × ${factor}`, mutant: { ...scaled, expr } },
    ];
  });
  return [...numbers, ...durations].filter(({ mutant }) => mutant.expr !== expr || mutant.for !== rule.for);
}

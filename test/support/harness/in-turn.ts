import { inject, it } from 'vitest';

/** In a quick run one of `every` cases, others at each turn, and one at least; all of them in a thorough run. */
export function inTurn<Case>(cases: readonly Case[], every: number, turn: number): Case[] {
  if (inject('isThorough')) return [...cases];
  return cases.filter((_, at) => (at + turn) % Math.min(every, cases.length) === 0);
}

/** A case whose mechanism another one covers in every run: it runs only in a thorough one. */
export const thoroughly = it.runIf(inject('isThorough'));

import { describe, inject, it } from 'vitest';

/** In a quick run one of `every` cases, others at each turn, and one at least; all of them in a thorough run. */
export function inTurn<Case>(cases: readonly Case[], every: number, turn: number): Case[] {
  if (inject('isThorough')) return [...cases];
  return cases.filter((_, at) => (at + turn) % Math.min(every, cases.length) === 0);
}

/** A case whose mechanism another one covers in every run: it runs only in a thorough one. */
export const thoroughly = it.runIf(inject('isThorough'));

/**
 * What holds on any database, once more on the embedded one: in a thorough run, and where there is no PostgreSQL. A quick
 * run has it on PostgreSQL.
 */
export function describeEmbedded(name: string, tests: () => void): void {
  describe.runIf(isEmbeddedToo())(name, tests);
}

/** One case of that kind. */
export const embeddedToo = it.runIf(isEmbeddedToo());

function isEmbeddedToo(): boolean {
  return inject('isThorough') || inject('addresses').postgres === undefined;
}

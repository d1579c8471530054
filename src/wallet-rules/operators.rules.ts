import { compareDecimals } from '../lib/decimal.ts';

/** How a condition compares what there is with what it expects, in the short form that is stored. */
export const OPERATORS = ['lt', 'lte', 'gt', 'gte', 'eq', 'neq'] as const;
export type Operator = (typeof OPERATORS)[number];

/** Spellings in words stand with `_`; `-` is taken in its place. */
const SPELLINGS: Record<Operator, readonly string[]> = {
  lt: ['<', 'less_than'],
  lte: ['<=', 'less_than_or_equal', 'less_than_or_equal_to', 'less_than_or_equals'],
  gt: ['>', 'greater_than'],
  gte: ['>=', 'greater_than_or_equal', 'greater_than_or_equal_to', 'greater_than_or_equals'],
  eq: ['=', '==', 'equal', 'equals', 'equal_to'],
  neq: ['!=', '<>', 'ne', 'not_equal', 'not_equals', 'not_equal_to'],
};

const BY_SPELLING: ReadonlyMap<string, Operator> = new Map(
  OPERATORS.flatMap((operator) => [operator, ...SPELLINGS[operator]].map((spelling) => [spelling, operator] as const)),
);

/** The operator that a spelling means; undefined where it means none. */
export function operatorOf(spelling: string): Operator | undefined {
  return BY_SPELLING.get(spelling.replaceAll('-', '_'));
}

/** Every spelling of an operator, the short form first. */
export function spellingsOf(operator: Operator): string[] {
  const spellings = [operator, ...SPELLINGS[operator]];
  return [...new Set(spellings.flatMap((spelling) => [spelling, spelling.replaceAll('_', '-')]))];
}

/** Whether `actual op expected` holds, exactly. */
export function holds(actual: string, op: Operator, expected: string): boolean {
  const order = compareDecimals(actual, expected);
  switch (op) {
    case 'lt':
      return order < 0;
    case 'lte':
      return order <= 0;
    case 'gt':
      return order > 0;
    case 'gte':
      return order >= 0;
    case 'eq':
      return order === 0;
    case 'neq':
      return order !== 0;
    default:
      return op satisfies never;
  }
}

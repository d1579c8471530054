import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Balance,
  evaluateRule,
  firstUnmet,
  operatorOf,
  spellingsOf,
} from '../../src/features/wallet-rules/evaluate.rules.ts';
import { OPERATORS, type RuleLogic } from '../../src/tables/wallet-rule-content.ts';
import { balances, conditions, factsOf, fullBalances, logics, ruleWith } from '../support/wallet-rules/logics.ts';

function evaluated(logic: RuleLogic, given: readonly Balance[]) {
  return evaluateRule(ruleWith(logic), factsOf(given));
}

function fires(logic: RuleLogic, given: readonly Balance[]): boolean {
  return evaluated(logic, given).fires;
}

function leavesOf(logic: RuleLogic): number {
  if ('field' in logic) return 1;
  if ('not' in logic) return leavesOf(logic.not);
  return ('and' in logic ? logic.and : logic.or).reduce((sum, child) => sum + leavesOf(child), 0);
}

function reversed(logic: RuleLogic): RuleLogic {
  if ('field' in logic) return logic;
  if ('not' in logic) return { not: reversed(logic.not) };
  return 'and' in logic ? { and: logic.and.map(reversed).reverse() } : { or: logic.or.map(reversed).reverse() };
}

describe('condition trees', () => {
  it('DG-10: follow De Morgan: not(and) equals or(not), and not(or) equals and(not)', () => {
    fc.assert(
      fc.property(fc.array(logics, { minLength: 1, maxLength: 4 }), balances, (trees, given) => {
        const denied = trees.map((tree) => ({ not: tree }));
        expect(fires({ not: { and: trees } }, given)).toBe(fires({ or: denied }, given));
        expect(fires({ not: { or: trees } }, given)).toBe(fires({ and: denied }, given));
      }),
    );
  });

  it('DG-10: a double negation changes nothing', () => {
    fc.assert(
      fc.property(logics, balances, (tree, given) => {
        expect(fires({ not: { not: tree } }, given)).toBe(fires(tree, given));
      }),
    );
  });

  it('DG-10: exactly one of a tree and its negation fires with all balances known, and neither with one unknown', () => {
    fc.assert(
      fc.property(logics, fullBalances, (tree, given) => {
        expect(fires({ not: tree }, given)).toBe(!fires(tree, given));
      }),
    );
    fc.assert(
      fc.property(logics, balances, (tree, given) => {
        const { explanation } = evaluated(tree, given);
        if (explanation.every(({ reason }) => reason === null)) return;
        expect([fires(tree, given), fires({ not: tree }, given)]).toEqual([false, false]);
      }),
    );
  });

  it('DG-10: reordering conditions changes only the order of the explanation', () => {
    fc.assert(
      fc.property(logics, balances, (tree, given) => {
        const [one, other] = [evaluated(tree, given), evaluated(reversed(tree), given)];
        expect(other.fires).toBe(one.fires);
        const outcomes = (list: typeof one.explanation) =>
          list.map((leaf) => JSON.stringify({ ...leaf, path: '' })).sort();
        expect(outcomes(other.explanation)).toEqual(outcomes(one.explanation));
      }),
    );
  });

  it('DG-16: a rule either fires or has a first unmet condition', () => {
    fc.assert(
      fc.property(logics, balances, (tree, given) => {
        const { fires: fired, explanation } = evaluated(tree, given);
        const unmet = firstUnmet(ruleWith(tree), explanation);
        expect(unmet === undefined).toBe(fired);
        if (unmet) expect(explanation).toContain(unmet);
      }),
    );
  });

  it('DG-10: reordering balances changes nothing', () => {
    fc.assert(
      fc.property(logics, balances, (tree, given) => {
        expect(evaluated(tree, given.toReversed())).toEqual(evaluated(tree, given));
      }),
    );
  });

  it('DG-10: every condition is explained once, with its own path', () => {
    fc.assert(
      fc.property(logics, balances, (tree, given) => {
        const { explanation } = evaluated(tree, given);
        expect(explanation).toHaveLength(leavesOf(tree));
        expect(new Set(explanation.map(({ path }) => path)).size).toBe(explanation.length);
      }),
    );
  });
});

describe('comparison operators', () => {
  it('D5-02: every spelling maps to exactly one operator', () => {
    for (const op of OPERATORS) for (const spelling of spellingsOf(op)) expect(operatorOf(spelling)).toBe(op);
    const all = OPERATORS.flatMap(spellingsOf);
    expect(new Set(all).size).toBe(all.length);
    for (const spelling of ['<', '<=', '>', '>=', '=', '==', '!=', 'less_than', 'less-than', 'greater_than']) {
      expect(all).toContain(spelling);
    }
  });

  it('D5-02: exactly one of lt, eq and gt holds, and lte, gte and neq follow from them', () => {
    fc.assert(
      fc.property(conditions, fullBalances, (condition, given) => {
        const holds = (op: (typeof OPERATORS)[number]) => fires({ ...condition, op }, given);
        expect([holds('lt'), holds('eq'), holds('gt')].filter(Boolean)).toHaveLength(1);
        expect(holds('lte')).toBe(holds('lt') || holds('eq'));
        expect(holds('gte')).toBe(!holds('lt'));
        expect(holds('neq')).toBe(!holds('eq'));
      }),
    );
  });
});

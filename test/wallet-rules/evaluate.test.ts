import { describe, expect, it } from 'vitest';
import { evaluateRule, firstUnmet, type Transfer } from '../../src/features/wallet-rules/evaluate.rules.ts';
import type {
  Condition,
  Operator,
  RuleLogic,
  TimePeriod,
  WalletRuleContent,
} from '../../src/tables/wallet-rule-content.ts';
import { AT, CURRENCY, factsOf, OTHER_CURRENCY, ruleWith } from '../support/wallet-rules/logics.ts';

const BIG = '1234567890123456789012345678901234567890';

function condition(changes: Partial<Condition> = {}): Condition {
  return { field: 'balance', op: 'lt', value: '100', network_currency_id: CURRENCY, ...changes };
}

function balance(value: string, field = 'balance') {
  return { field, network_currency_id: CURRENCY, value };
}

const low = condition();
const high = condition({ op: 'gt' });
const unknown = condition({ field: 'nobody' });

describe('an automatic transfer', () => {
  it.each<[string, Operator, string, boolean]>([
    ['99.99', 'lt', '100', true],
    ['100', 'lt', '100', false],
    ['100.0', 'lte', '100', true],
    ['100', 'gt', '99.999999999999999999999999', true],
    ['100', 'gte', '100.00', true],
    ['1.50', 'eq', '1.5', true],
    ['0.1', 'neq', '0.1', false],
    ['-1', 'lt', '0', true],
    [`${BIG}.1`, 'gt', BIG, true],
    [BIG, 'eq', `${BIG.slice(0, -1)}1`, false],
    ['0.30000000000000004', 'eq', '0.3', false],
  ])('DG-10 D5-03: a balance of %s %s %s: %s', (value, op, expected, fires) => {
    const rule = ruleWith(condition({ op, value: expected }));
    expect(evaluateRule(rule, factsOf([balance(value)]))).toEqual({
      fires,
      explanation: [
        {
          path: 'auto_transfer_rule.rule_logic',
          field: 'balance',
          op,
          expected,
          actual: value,
          result: fires,
          reason: null,
        },
      ],
    });
  });

  it.each<[string, RuleLogic, boolean]>([
    ['and: all hold', { and: [low, low] }, true],
    ['and: one does not hold', { and: [low, high] }, false],
    ['or: one holds', { or: [high, low] }, true],
    ['or: none holds', { or: [high, high] }, false],
    ['not: the condition does not hold', { not: high }, true],
    ['not: the value is unknown', { not: unknown }, false],
    ['or: one value is unknown', { or: [low, unknown] }, false],
    ['and, not: one value is unknown', { and: [low, { not: unknown }] }, false],
    ['not, or: one value is unknown', { not: { or: [high, unknown] } }, false],
    ['not, and: one value is unknown', { not: { and: [high, unknown] } }, false],
  ])('DG-10: a condition tree is evaluated: %s', (_name, logic, fires) => {
    expect(evaluateRule(ruleWith(logic), factsOf([balance('5')])).fires).toBe(fires);
  });

  it('DG-10: each condition is explained, with a reason if it cannot be evaluated', () => {
    const other = condition({ network_currency_id: OTHER_CURRENCY });
    const twice = condition({ field: 'twice' });
    const logic = { and: [low, { or: [high, { not: other }] }, twice] };
    const given = [balance('5'), balance('1', 'twice'), balance('2', 'twice')];
    const { fires, explanation } = evaluateRule(ruleWith(logic), factsOf(given));
    expect(fires).toBe(false);
    expect(explanation.map(({ path, result, actual, reason }) => [path, result, actual, reason])).toEqual([
      ['auto_transfer_rule.rule_logic.and[0]', true, '5', null],
      ['auto_transfer_rule.rule_logic.and[1].or[0]', false, '5', null],
      [
        'auto_transfer_rule.rule_logic.and[1].or[1].not',
        false,
        null,
        'no balance is given for the field in this currency',
      ],
      [
        'auto_transfer_rule.rule_logic.and[2]',
        false,
        null,
        'more than one balance is given for the field in this currency',
      ],
    ]);
  });

  it.each<[string, RuleLogic, string]>([
    ['and: the first holds', { and: [low, high, high] }, '.and[1]'],
    ['or: none holds', { or: [high, high] }, '.or[0]'],
    ['or in and: the or holds, the next does not', { and: [{ or: [high, low] }, high] }, '.and[1]'],
    ['not: the condition holds', { not: low }, '.not'],
    ['not, or: the second holds', { not: { or: [high, low] } }, '.not.or[1]'],
    ['or: one holds, one is unknown', { or: [high, low, unknown] }, '.or[2]'],
    ['and: the first does not hold, the second is unknown', { and: [high, unknown] }, '.and[0]'],
  ])('DG-16: the first unmet condition is found: %s', (_name, logic, path) => {
    const rule = ruleWith(logic);
    const { explanation } = evaluateRule(rule, factsOf([balance('5')]));
    expect(firstUnmet(rule, explanation)?.path).toBe(`auto_transfer_rule.rule_logic${path}`);
  });

  it('D5-04: a limit that a transfer rule also contains is not evaluated', () => {
    const other = { max_amount: '1', time_period: 'day', time_period_value: 1 } as const;
    const rule = { ...ruleWith(low), permissionless_transfer_limit_rule: other };
    expect(evaluateRule(rule, factsOf([balance('5')]))).toMatchObject({ fires: true, explanation: { length: 1 } });
  });

  it.each([
    [90, 10, false],
    [10, 10, true],
    [10, 90, true],
    [90, undefined, true],
    [undefined, 10, true],
  ])('D5-04: a rule with approver priorities from %s to %s can fire: %s', (min_priority, max_priority, fires) => {
    const rule = { ...ruleWith(low), sign_and_approve_rule: { min_priority, max_priority } };
    const { fires: fired, explanation } = evaluateRule(rule, factsOf([balance('5')]));
    expect(fired).toBe(fires);
    if (fires) expect(explanation).toHaveLength(1);
    else {
      expect(explanation[1]).toEqual({
        path: 'sign_and_approve_rule',
        field: 'min_priority',
        op: 'lte',
        expected: '10',
        actual: '90',
        result: false,
        reason: 'min_priority is above max_priority: no user can approve',
      });
    }
  });

  it('DG-10: a disabled rule does not fire, and says so', () => {
    const { fires, explanation } = evaluateRule({ ...ruleWith(low), status: 'disabled' }, factsOf([balance('5')]));
    expect(fires).toBe(false);
    expect(explanation.at(-1)).toMatchObject({ path: 'status', result: false, reason: 'the rule is disabled' });
  });
});

function limitOf(max_amount: string, time_period: TimePeriod, time_period_value: number): WalletRuleContent {
  const { auto_transfer_rule: other, ...rule } = ruleWith(unknown);
  return {
    ...rule,
    type: 'permissionless_transfer_limit',
    auto_transfer_rule: other,
    permissionless_transfer_limit_rule: { max_amount, time_period, time_period_value },
  };
}

function transfer(amount: string, secondsBefore: bigint, network_currency_id = CURRENCY): Transfer {
  return { amount, network_currency_id, at: { seconds: AT.seconds - secondsBefore, nanos: 0 } };
}

describe('a transfer limit', () => {
  it.each<[string, Transfer[], string, boolean]>([
    ['no transfers', [], '0', true],
    ['exactly the limit', [transfer('60.5', 0n), transfer('39.5', 1n)], '100.0', true],
    [
      'slightly more than the limit',
      [transfer('100', 0n), transfer('0.000000000000000000000001', 1n)],
      '100.000000000000000000000001',
      false,
    ],
    [
      'a transfer at the start of the window, which is excluded',
      [transfer('1', 7_199n), transfer('100', 7_200n)],
      '1',
      true,
    ],
    ['a future transfer', [transfer('1', 0n), transfer('100', -1n)], '1', true],
    ['a transfer in another currency', [transfer('1', 0n), transfer('100', 0n, OTHER_CURRENCY)], '1', true],
  ])('DG-10: a limit of 100 in two hours is evaluated with %s', (_name, transfers, actual, fires) => {
    expect(evaluateRule(limitOf('100', 'hour', 2), factsOf([], { transfers }))).toEqual({
      fires,
      explanation: [
        {
          path: 'permissionless_transfer_limit_rule',
          field: 'max_amount',
          op: 'lte',
          expected: '100',
          actual,
          result: fires,
          reason: null,
        },
      ],
    });
  });

  it('DG-10: a limit does not fire when the transfers are missing, and says so', () => {
    const { fires, explanation } = evaluateRule(limitOf('100', 'day', 1), factsOf([]));
    expect(fires).toBe(false);
    expect(explanation).toMatchObject([{ actual: null, result: false, reason: 'the transfers are missing' }]);
  });
});

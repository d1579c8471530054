import fc from 'fast-check';
import type { Balance, Facts } from '../../../src/features/wallet-rules/evaluate.rules.ts';
import {
  type Condition,
  OPERATORS,
  type RuleLogic,
  type WalletRuleContent,
} from '../../../src/tables/wallet-rule-content.ts';

export const CURRENCY = 'aaaaaaaa-0000-4000-8000-000000000001';
export const OTHER_CURRENCY = 'bbbbbbbb-0000-4000-8000-000000000002';
export const AT = { seconds: 1_795_000_000n, nanos: 0 };

const FIELDS = ['a', 'b', 'c'];
const VALUES = ['-1', '0', '0.5', '0.50', '1', '100000000000000000000000000000000000000.5'];

/** A rule of the type, with nothing but what its type needs. */
export function ruleWith(logic: RuleLogic): WalletRuleContent {
  return {
    name: '',
    type: 'auto_transfer',
    network_id: CURRENCY,
    network_currency_id: CURRENCY,
    auto_transfer_rule: { type: 'auto', rule_logic: logic, amount: '1', target_wallet_id: CURRENCY },
  };
}

export function factsOf(balances: readonly Balance[], more: Partial<Facts> = {}): Facts {
  return { balances, transfers: undefined, at: AT, ...more };
}

export const conditions: fc.Arbitrary<Condition> = fc.record({
  field: fc.constantFrom(...FIELDS),
  op: fc.constantFrom(...OPERATORS),
  value: fc.constantFrom(...VALUES),
  network_currency_id: fc.constantFrom(CURRENCY, OTHER_CURRENCY),
});

/** Condition trees of at most four levels. */
export const logics: fc.Arbitrary<RuleLogic> = fc.letrec<{ tree: RuleLogic }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    conditions,
    fc.record({ and: fc.array(tie('tree'), { minLength: 1, maxLength: 3 }) }),
    fc.record({ or: fc.array(tie('tree'), { minLength: 1, maxLength: 3 }) }),
    fc.record({ not: tie('tree') }),
  ),
})).tree;

/** Balances of some of the fields, in both currencies: now and then one is missing or there twice. */
export const balances: fc.Arbitrary<Balance[]> = fc.array(
  fc.record({
    field: fc.constantFrom(...FIELDS),
    network_currency_id: fc.constantFrom(CURRENCY, OTHER_CURRENCY),
    value: fc.constantFrom(...VALUES),
  }),
  { maxLength: 8 },
);

/** Every field in both currencies, once. */
export const fullBalances: fc.Arbitrary<Balance[]> = fc
  .array(fc.constantFrom(...VALUES), { minLength: 6, maxLength: 6 })
  .map((values) =>
    [CURRENCY, OTHER_CURRENCY].flatMap((network_currency_id, at) =>
      FIELDS.map((field, index) => ({ field, network_currency_id, value: values[at * 3 + index] ?? '0' })),
    ),
  );

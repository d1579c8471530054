import type { Evaluation, Explanation } from '../../../domain/wallet-rules/evaluate.rules.ts';
import { previewInput } from '../../../domain/wallet-rules/preview.service.ts';
import { type Builder, implement, inputOf, needs } from '../kit/builder.ts';
import { parsedArgument } from '../kit/camel-input.ts';
import type { WalletRuleInputType } from './wallet-rule-mutations.graphql.ts';

/** Adds the query that evaluates whether a rule would fire, and explains why. */
export function addPreview(builder: Builder, rule: WalletRuleInputType): void {
  const explanation = implement(
    builder.objectRef<Explanation>('WalletRuleExplanation'),
    'How one condition of a rule came out: whether `actual op expected` holds.',
    {
      path: ['String', 'The path in the rule, in the names of REST: `auto_transfer_rule.rule_logic.and[1]`.'],
      field: ['String', 'The field that is compared.'],
      op: ['String', 'lt, lte, gt, gte, eq or neq.'],
      expected: ['Decimal?', 'The value that the rule compares it with.'],
      actual: ['Decimal?', 'The value in the facts; null if they have none.'],
      result: ['Boolean', 'Whether it holds; false where it could not be evaluated.'],
      reason: ['String?', 'Why it could not be evaluated, or can never hold.'],
    },
  );
  const preview = implement(builder.objectRef<Evaluation>('WalletRulePreview'), 'Whether a rule would fire, and why.', {
    fires: [
      'Boolean',
      'An automatic transfer: whether it would be made. A limit: whether the transfers in the window stay within the maximum. Always false if a condition could not be evaluated.',
    ],
    explanation: [[explanation], 'Every condition, in the order in which they stand in the rule.'],
  });
  const input = previewInputType(builder, rule);
  builder.queryField('previewWalletRule', (t) =>
    t.field({
      type: preview,
      ...needs(
        'wallet-rules:read',
        'Whether a rule would fire for the given balances and transfers, and how each of its conditions comes out. Nothing is changed. NOT_FOUND for a `ruleId` that is unknown or of another node.',
      ),
      args: { input: t.arg({ ...parsedArgument(input, previewInput), description: 'The rule and the facts.' }) },
      resolve: (_root, { input: given }, { services, principal }) =>
        services.walletRulePreviews.preview(principal.nodeId, given),
    }),
  );
}

function previewInputType(builder: Builder, rule: WalletRuleInputType) {
  const balance = inputOf(builder, 'BalanceInput', 'The value of a field in a currency.', {
    field: ['String!', "The field's name, as conditions have it, such as `target.balance`."],
    networkCurrencyId: ['ID!', 'The UUID of the currency.'],
    value: ['Decimal!', 'Its value, in units of the currency.'],
  });
  const transfer = inputOf(builder, 'TransferInput', 'A transfer that was made, or is to be made.', {
    networkCurrencyId: ['ID!', 'The UUID of the currency.'],
    amount: ['Decimal!', 'How much: 0 or more.'],
    at: ['DateTime!', 'When it was or will be made.'],
  });
  return inputOf(builder, 'PreviewWalletRuleInput', 'A rule or its id, and the facts to evaluate it with.', {
    rule: [rule, 'The rule itself; either this or `ruleId`.'],
    ruleId: ['ID', 'The UUID of a rule of the node; either this or `rule`.'],
    balances: [[balance], "The wallet's balances: at most 1000.", 'required'],
    transfers: [
      [transfer],
      "The wallet's transfers, at most 10000. A limit counts the transfers in its currency within its window; without a list it cannot be evaluated.",
    ],
    at: [
      'DateTime',
      'The time of the evaluation; now by default. The window of a limit ends at this time and excludes its start; months and years are calendar months and years in UTC.',
    ],
  });
}

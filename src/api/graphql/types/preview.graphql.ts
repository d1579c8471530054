import type { Evaluation, Explanation } from '../../../domain/wallet-rules/evaluate.rules.ts';
import { previewInput } from '../../../domain/wallet-rules/preview.service.ts';
import { type Builder, needs } from '../kit/builder.ts';
import { parsedArgument } from '../kit/camel-input.ts';
import type { WalletRuleInputType } from './wallet-rule-mutations.graphql.ts';

/** Adds the query that evaluates whether a rule would fire, and explains why. */
export function addPreview(builder: Builder, rule: WalletRuleInputType): void {
  const explanation = builder.objectRef<Explanation>('WalletRuleExplanation').implement({
    description: 'How one condition of a rule came out: whether `actual op expected` holds.',
    fields: (t) => ({
      path: t.exposeString('path', {
        description: 'The path in the rule, in the names of REST: `auto_transfer_rule.rule_logic.and[1]`.',
      }),
      field: t.exposeString('field', { description: 'The field that is compared.' }),
      op: t.exposeString('op', { description: 'lt, lte, gt, gte, eq or neq.' }),
      expected: t.expose('expected', {
        type: 'Decimal',
        nullable: true,
        description: 'The value that the rule compares it with.',
      }),
      actual: t.expose('actual', {
        type: 'Decimal',
        nullable: true,
        description: 'The value in the facts; null if they have none.',
      }),
      result: t.exposeBoolean('result', {
        description: 'Whether it holds; false where it could not be evaluated.',
      }),
      reason: t.exposeString('reason', {
        nullable: true,
        description: 'Why it could not be evaluated, or can never hold.',
      }),
    }),
  });
  const preview = builder.objectRef<Evaluation>('WalletRulePreview').implement({
    description: 'Whether a rule would fire, and why.',
    fields: (t) => ({
      fires: t.exposeBoolean('fires', {
        description:
          'An automatic transfer: whether it would be made. A limit: whether the transfers in the window stay within the maximum. Always false if a condition could not be evaluated.',
      }),
      explanation: t.expose('explanation', {
        type: [explanation],
        description: 'Every condition, in the order in which they stand in the rule.',
      }),
    }),
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
  const balance = builder.inputType('BalanceInput', {
    description: 'The value of a field in a currency.',
    fields: (t) => ({
      field: t.string({
        required: true,
        description: "The field's name, as conditions have it, such as `target.balance`.",
      }),
      networkCurrencyId: t.id({ required: true, description: 'The UUID of the currency.' }),
      value: t.field({ type: 'Decimal', required: true, description: 'Its value, in units of the currency.' }),
    }),
  });
  const transfer = builder.inputType('TransferInput', {
    description: 'A transfer that was made, or is to be made.',
    fields: (t) => ({
      networkCurrencyId: t.id({ required: true, description: 'The UUID of the currency.' }),
      amount: t.field({ type: 'Decimal', required: true, description: 'How much: 0 or more.' }),
      at: t.field({ type: 'DateTime', required: true, description: 'When it was or will be made.' }),
    }),
  });
  return builder.inputType('PreviewWalletRuleInput', {
    description: 'A rule or its id, and the facts to evaluate it with.',
    fields: (t) => ({
      rule: t.field({ type: rule, description: 'The rule itself; either this or `ruleId`.' }),
      ruleId: t.id({ description: 'The UUID of a rule of the node; either this or `rule`.' }),
      balances: t.field({ type: [balance], required: true, description: "The wallet's balances: at most 1000." }),
      transfers: t.field({
        type: [transfer],
        description:
          "The wallet's transfers, at most 10000. A limit counts the transfers in its currency within its window; without a list it cannot be evaluated.",
      }),
      at: t.field({
        type: 'DateTime',
        description:
          'The time of the evaluation; now by default. The window of a limit ends at this time and excludes its start; months and years are calendar months and years in UTC.',
      }),
    }),
  });
}

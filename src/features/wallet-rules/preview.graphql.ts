import { type Builder, implement, inputOf, type Members, needs } from '../../api/graphql/kit/builder.ts';
import { parsedArgument, traits } from '../../api/graphql/kit/field-options.ts';
import { OPERATORS } from '../../tables/wallet-rule-content.ts';
import type { Explanation } from './evaluate.rules.ts';
import {
  type PreviewedRule,
  previewFactsInput,
  previewInput,
  priceOfWalletPreview,
  type RulePreview,
} from './preview.service.ts';
import type { WalletRuleEnums, WalletRuleInputType } from './wallet-rule-mutations.graphql.ts';
import type { RuleWarning } from './warnings.rules.ts';

/** Adds the queries that evaluate whether a rule, or any active rule of a wallet, would fire, and explain why. */
export function addPreview(builder: Builder, enums: WalletRuleEnums, rule: WalletRuleInputType): void {
  const explanation = implement(
    builder.objectRef<Explanation>('WalletRuleExplanation'),
    'The result of one condition of a rule: whether `actual op expected` is true.',
    {
      path: ['String', 'The path in the rule, with the names of REST: `auto_transfer_rule.rule_logic.and[1]`.'],
      field: ['String', 'The field that is compared.'],
      op: ['String', `One of ${OPERATORS.join(', ')}.`],
      expected: ['Decimal?', 'The value that the rule compares it with.'],
      actual: ['Decimal?', 'The value from the facts; null if there is none.'],
      result: ['Boolean', 'Whether the condition is true; false if it could not be evaluated.'],
      reason: ['String?', 'The reason why it could not be evaluated or can never be true; null if there is none.'],
    },
  );
  const warning = implement(
    builder.objectRef<RuleWarning>('WalletRuleWarning'),
    'Something that a rule may contain but that can hardly be meant, such as a target wallet on another chain.',
    {
      path: ['String', 'The path in the rule, with the names of REST: `auto_transfer_rule.target_wallet_id`.'],
      message: ['String', 'What does not fit.'],
    },
  );
  const preview = implement(
    builder.objectRef<RulePreview>('WalletRulePreview'),
    'Whether a rule would fire, and why.',
    {
      fires: [
        'Boolean',
        'For an automatic transfer, whether it would be made. For a limit, whether the transfers in the window stay within the maximum. Always false if a condition could not be evaluated.',
      ],
      explanation: [[explanation], 'Every condition, in the order of the rule.'],
    },
  );
  builder.objectField(preview, 'warnings', (t) =>
    t.field({
      type: [warning],
      description:
        'What its wallet, network and currency cannot reach, and an approval by nobody. A rule with warnings can be stored.',
      resolve: (previewed, _args, { services, principal }) =>
        services.walletRulePreviews.warnings(principal.nodeId, previewed),
    }),
  );
  const previewed = implement(
    builder.objectRef<PreviewedRule>('WalletPreviewRule'),
    'An active rule of a wallet, and whether it would fire.',
    {
      rule_id: ['ID', "The rule's UUID."],
      name: ['String', 'Its display name.'],
      type: [enums.ruleType, 'What it does.'],
      priority: ['Int?', 'Its priority, 1 to 100.'],
      fires: ['Boolean', 'Whether it would fire, as in WalletRulePreview.'],
      unmet: [
        explanation,
        'The first condition that keeps the rule from firing; under `not`, one that is true. Null if it fires.',
        'nullable',
      ],
    },
  );
  const walletPreview = implement(
    builder.objectRef<{ rules: PreviewedRule[] }>('WalletPreview'),
    "Which of a wallet's rules would fire.",
    { rules: [[previewed], 'The active rules: highest priority first, those without one last; then oldest first.'] },
  );
  const facts = factMembers(builder);
  const factsInput = inputOf(builder, 'PreviewFacts', 'The facts to evaluate rules against.', facts);
  const input = inputOf(builder, 'PreviewWalletRuleInput', 'A rule or its id, and the facts to evaluate it against.', {
    rule: [rule, 'The rule. Give either this or `ruleId`.'],
    ruleId: ['ID', 'The UUID of a stored rule. Give either this or `rule`.'],
    walletId: ['ID', 'With `rule`: the UUID of the wallet that it is for, which the warnings consider.'],
    ...facts,
  });
  builder.queryFields((t) => ({
    previewWalletRule: t.field({
      type: preview,
      ...needs(
        'wallet-rules:read',
        'Evaluates a rule against the given balances and transfers: whether it would fire, and the result of each condition. Changes nothing. NOT_FOUND if `ruleId` is unknown or belongs to another tenant.',
      ),
      args: { input: t.arg({ ...parsedArgument(input, previewInput), description: 'The rule and the facts.' }) },
      resolve: (_root, { input: ruleAndFacts }, { services, principal }) =>
        services.walletRulePreviews.preview(principal.nodeId, ruleAndFacts),
    }),
    previewWallet: t.field({
      type: walletPreview,
      ...traits({ price: priceOfWalletPreview }),
      ...needs(
        'wallet-rules:read',
        'Evaluates every active rule of a wallet against the same balances and transfers. Changes nothing. NOT_FOUND if the wallet is unknown or belongs to another tenant; PAGE_TOO_LARGE if it has more than 500 active rules.',
      ),
      args: {
        walletId: t.arg.id({ required: true, description: "The wallet's UUID." }),
        facts: t.arg({ ...parsedArgument(factsInput, previewFactsInput), description: 'The facts.' }),
      },
      resolve: (_root, { walletId, facts: walletFacts }, { services, principal }) =>
        services.walletRulePreviews.previewWallet(principal.nodeId, walletId, walletFacts),
    }),
  }));
}

/** Adds the types of facts, and returns the members of an input that has them. */
function factMembers(builder: Builder): Members {
  const balance = inputOf(builder, 'BalanceInput', 'The value of a field in a currency.', {
    field: ['String!', "The field's name as in conditions, such as `target.balance`."],
    networkCurrencyId: ['ID!', 'The UUID of the currency.'],
    value: ['Decimal!', 'Its value, in units of the currency.'],
  });
  const transfer = inputOf(builder, 'TransferInput', 'A past or planned transfer.', {
    networkCurrencyId: ['ID!', 'The UUID of the currency.'],
    amount: ['Decimal!', 'The amount, at least 0.'],
    at: ['DateTime!', 'When it was or will be made.'],
  });
  return {
    balances: [[balance], "The wallet's balances: at most 1000.", 'required'],
    transfers: [
      [transfer],
      "The wallet's transfers, at most 10000. A limit counts the transfers in its currency within its window; without a list it cannot be evaluated.",
    ],
    at: [
      'DateTime',
      'The time of the evaluation; now by default. The window of a limit ends at this time and excludes its start; months and years are calendar months and years in UTC.',
    ],
  };
}

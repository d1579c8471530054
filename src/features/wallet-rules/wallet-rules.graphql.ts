import {
  type Builder,
  connectionOf,
  implement,
  inputOf,
  type Members,
  needs,
  parsedArgument,
  traits,
} from '../../api/graphql/kit/builder.ts';
import {
  connectionResolver,
  ownedConnectionResolver,
  rowResolver,
  withoutNulls,
} from '../../api/graphql/kit/resolvers.ts';
import { hasDecimalForm } from '../../lib/decimal.ts';
import { textInput } from '../../lib/input.ts';
import { ExactNumber } from '../../lib/json.ts';
import {
  type AutoTransferRule,
  OPERATORS,
  type PermissionlessTransferLimitRule,
  type RuleLogic,
  type SignAndApproveRule,
} from '../../tables/wallet-rule-content.ts';
import type { Explanation, RuleWarning } from './evaluate.rules.ts';
import {
  type PreviewedRule,
  previewFactsInput,
  previewInput,
  priceOfWalletPreview,
  type RulePreview,
} from './preview.service.ts';
import {
  addWalletRuleEnums,
  addWalletRuleMutations,
  type WalletRuleEnums,
  type WalletRuleInputType,
  walletRuleInputType,
} from './wallet-rule-mutations.graphql.ts';
import {
  contentOf,
  rulesOfTenant,
  versionsOfRule,
  type WalletRuleRow,
  type WalletRuleVersionRow,
} from './wallet-rules.service.ts';

declare module '../../api/graphql/kit/builder.ts' {
  interface ObjectRows {
    WalletRule: WalletRuleRow;
  }
}

/** Adds the types of wallet rules, their queries, the preview and the mutations. */
export function addWalletRules(builder: Builder): void {
  const input = walletRuleInputType(builder);
  const enums = addWalletRuleEnums(builder);
  const autoTransfer = implement(
    builder.objectRef<AutoTransferRule>('AutoTransferRule'),
    'The condition, amount and target of an automatic transfer.',
    {
      type: [enums.autoTransferType, 'Whether it waits for approval.'],
      amount: ['Decimal', 'The amount to transfer.'],
      target_wallet_id: ['ID', 'The id of the target wallet, as sent.'],
    },
    (t) => ({
      ruleLogic: t.field({
        type: 'JSON',
        description: 'The condition tree as in REST, with operators in the short form.',
        resolve: (rule) => ruleLogicView(rule.rule_logic),
      }),
    }),
  );
  const signAndApprove = implement(
    builder.objectRef<SignAndApproveRule>('SignAndApproveRule'),
    'The approvals that are required.',
    {
      mandatory_user_id: ['ID?', 'The id of a user who must approve, as sent.'],
      min_priority: ['Int?', 'The lowest priority of an approver, 1 to 100.'],
      max_priority: ['Int?', 'The highest priority of an approver, 1 to 100.'],
      min_user_count: ['Int?', 'The number of approvals required, at least 1.'],
    },
  );
  const limit = implement(
    builder.objectRef<PermissionlessTransferLimitRule>('PermissionlessTransferLimitRule'),
    'The limit on transfers within a time window.',
    {
      max_amount: ['Decimal', 'The maximum in the window: a whole number.'],
      time_period: [enums.timePeriod, 'The period of the window.'],
      time_period_value: ['Int', 'The number of periods in the window.'],
    },
  );
  implement(builder.objectRef<WalletRuleRow>('WalletRule'), 'A rule of a wallet.', {
    id: ['ID', 'A UUID, the same as in REST.'],
    wallet_id: ['ID', 'The wallet that it belongs to.'],
    name: ['String', 'The display name.'],
    type: ['String', '`auto_transfer` or `permissionless_transfer_limit`.'],
    network_id: ['ID', 'The network that it applies to, as sent.'],
    network_currency_id: ['ID', 'The currency that it applies to, as sent.'],
    priority: ['Int?', 'The priority, 1 to 100; stored as sent.'],
    status: [enums.status, 'Whether the rule can fire.'],
    version: ['Int', 'The version, which every change raises; the entity tag in REST.'],
    auto_transfer_rule: [autoTransfer, 'The automatic transfer; null if not sent.', 'nullable'],
    sign_and_approve_rule: [signAndApprove, 'The approvals that are required; null if not sent.', 'nullable'],
    permissionless_transfer_limit_rule: [
      limit,
      'The limit on transfers within a time window; null if not sent.',
      'nullable',
    ],
    created_at: ['DateTime', 'When it was created.'],
    updated_at: ['DateTime', 'When it was last changed.'],
  });
  addPreview(builder, enums, input);
  addWalletRuleMutations(builder, enums, input);
  addWalletRuleVersions(builder, enums);
  const connection = connectionOf(builder, 'WalletRule', 'A page of wallet rules.', 'A rule and its cursor.');
  builder.objectField('Wallet', 'rules', (t) =>
    t.field({
      type: connection,
      ...needs('wallet-rules:read', "The wallet's rules, oldest first."),
      args: t.arg.connectionArgs(),
      resolve: ownedConnectionResolver('rulesOfWallet', ({ walletRulePages }) => walletRulePages.ofWallets),
    }),
  );
  builder.queryFields((t) => ({
    walletRules: t.field({
      type: connection,
      ...needs(
        'wallet-rules:read',
        'Rules, active or not, oldest first. NOT_FOUND if the wallet is unknown or belongs to another tenant.',
      ),
      args: {
        walletId: t.arg.id({ description: 'Rules of this wallet; of all wallets by default.' }),
        type: t.arg.string({
          description: 'Rules of this type: `auto_transfer` or `permissionless_transfer_limit`.',
          validate: { schema: textInput() },
        }),
        changedSince: t.arg({ type: 'DateTime', description: 'Rules created or changed at or after this time.' }),
        ...t.arg.connectionArgs(),
      },
      resolve: connectionResolver('walletRules', rulesOfTenant, ({ walletId, type, changedSince }) =>
        withoutNulls({ walletId, type, changedSince }),
      ),
    }),
    walletRule: t.field({
      type: 'WalletRule',
      nullable: true,
      ...needs('wallet-rules:read', 'One rule; null if the id is unknown or belongs to another tenant.'),
      args: { id: t.arg.id({ required: true, description: "The rule's UUID." }) },
      resolve: rowResolver(({ walletRulePages }, nodeId, id) => walletRulePages.find(nodeId, id)),
    }),
  }));
}

/** Returns a stored decimal as a JSON number with every digit; a text that is none as it is, so that the rule is shown. */
function exactOf(text: string): unknown {
  return hasDecimalForm(text) ? new ExactNumber(text) : text;
}

/** Returns a condition tree in its REST form, whose values are JSON numbers that are written with every digit. */
function ruleLogicView(logic: RuleLogic): unknown {
  if ('field' in logic) return { ...logic, value: exactOf(logic.value) };
  if ('not' in logic) return { not: ruleLogicView(logic.not) };
  return 'and' in logic ? { and: logic.and.map(ruleLogicView) } : { or: logic.or.map(ruleLogicView) };
}

/** Returns the content of a version as the body of REST that makes it, with every digit of its numbers. */
function restBodyOf(row: WalletRuleVersionRow): object {
  const { auto_transfer_rule: transfer, permissionless_transfer_limit_rule: limit, ...content } = contentOf(row);
  return {
    ...content,
    auto_transfer_rule: transfer && {
      ...transfer,
      rule_logic: ruleLogicView(transfer.rule_logic),
      amount: exactOf(transfer.amount),
    },
    permissionless_transfer_limit_rule: limit && { ...limit, max_amount: exactOf(limit.max_amount) },
  };
}

/** Adds the type of versions, the field of rules that lists them, and the query that finds them for a deleted rule too. */
function addWalletRuleVersions(builder: Builder, { status }: WalletRuleEnums): void {
  const type = implement(
    builder.objectRef<WalletRuleVersionRow>('WalletRuleVersion'),
    'A version of a rule and its author.',
    {
      version: ['Int', 'The version number; versions are numbered from 1 without gaps.'],
      status: [status, 'The rule status in this version.'],
      deleted: ['Boolean', 'Whether the rule was deleted with its wallet; `rule` is its last state.'],
      client_id: ['ID?', 'The client of that token; null if it names none or is unknown.'],
      correlation_id: ['String?', 'The correlation id of the request, as in its audit record; null if unknown.'],
      reason: ['String?', 'Why it was made, as its author says; null if no reason was given.'],
      at: ['DateTime', 'When it was made.'],
    },
    (t) => ({
      rule: t.field({
        type: 'JSON',
        description:
          'The rule in full, as a REST body with only the members that were sent and operators in the short form. To restore it, send it with PUT.',
        resolve: restBodyOf,
      }),
      subject: t.string({
        description:
          "The `sub` of the author's token: the id of a supervisor or client, or any text in a legacy token. Empty if unknown.",
        resolve: (row) => row.subject ?? '',
      }),
    }),
  );
  const connection = connectionOf(builder, type, 'A page of versions.', 'A version and its cursor.');
  builder.objectField('WalletRule', 'versions', (t) =>
    t.field({
      type: connection,
      ...needs('wallet-rules:read', 'Its versions, newest first.'),
      args: t.arg.connectionArgs(),
      resolve: ownedConnectionResolver('versionsOfRule', ({ walletRulePages }) => walletRulePages.versions),
    }),
  );
  builder.queryField('walletRuleVersions', (t) =>
    t.field({
      type: connection,
      ...needs(
        'wallet-rules:read',
        "A rule's versions, newest first, also if the rule was deleted with its wallet. NOT_FOUND if the rule is unknown or belongs to another tenant.",
      ),
      args: { ruleId: t.arg.id({ required: true, description: "The rule's UUID." }), ...t.arg.connectionArgs() },
      resolve: connectionResolver('walletRuleVersions', versionsOfRule, ({ ruleId }) => ruleId.toLowerCase()),
    }),
  );
}

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
    (t) => ({
      warnings: t.field({
        type: [warning],
        description:
          'What its wallet, network and currency cannot reach, and an approval by nobody. A rule with warnings can be stored.',
        resolve: (previewed, _args, { services, principal }) =>
          services.walletRulePreviews.warnings(principal.nodeId, previewed),
      }),
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
  const facts: Members = {
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

import { type Builder, enumOf, IDEMPOTENT, inputOf, needs, parsedArgument } from '../../api/graphql/kit/builder.ts';
import { callerOf, errorsOf, orMember, PreconditionError } from '../../api/graphql/kit/resolvers.ts';
import { type AutoTransferRule, OPERATORS, type RuleType, type TimePeriod } from '../../tables/wallet-rule-content.ts';
import { reasonInput, walletRuleTextInput } from './wallet-rule.input.ts';

/** Adds the input type of a rule, with the REST members in camelCase. */
export function walletRuleInputType(builder: Builder) {
  const autoTransfer = inputOf(
    builder,
    'AutoTransferRuleInput',
    'The condition, amount and target of an automatic transfer.',
    {
      type: ['String!', '`auto` or `auto_with_approve`.'],
      ruleLogic: [
        'JSON!',
        `A condition {field, op, value, network_currency_id} or a group {and: […]}, {or: […]}, {not: {…}}, at most 8 levels deep and with at most 64 conditions. \`op\` is one of ${OPERATORS.join(', ')}, or another spelling of one. All interfaces share this JSON, so its names are spelt as in REST (\`network_currency_id\`).`,
      ],
      amount: ['Decimal!', 'The amount to transfer, more than 0.'],
      targetWalletId: ['ID!', 'The UUID of the target wallet.'],
    },
  );
  const signAndApprove = inputOf(builder, 'SignAndApproveRuleInput', 'The approvals that are required.', {
    mandatoryUserId: ['ID', 'The UUID of a user who must approve.'],
    minPriority: ['Int', 'The lowest priority of an approver, 1 to 100.'],
    maxPriority: ['Int', 'The highest priority of an approver, 1 to 100.'],
    minUserCount: ['Int', 'The number of approvals required, at least 1.'],
  });
  const limit = inputOf(
    builder,
    'PermissionlessTransferLimitRuleInput',
    'The limit on transfers within a time window.',
    {
      maxAmount: ['Decimal!', 'The maximum in the window: a whole number above 0.'],
      timePeriod: ['String!', '`hour`, `day`, `week`, `month` or `year`.'],
      timePeriodValue: ['Int!', 'The number of periods in the window, at least 1.'],
    },
  );
  return inputOf(
    builder,
    'WalletRuleInput',
    'A rule. The object of its type is required; the object of the other type is stored but not evaluated.',
    {
      name: ['String!', 'The display name.'],
      type: ['String!', '`auto_transfer` or `permissionless_transfer_limit`.'],
      networkId: ['ID!', 'The UUID of the network that it applies to.'],
      networkCurrencyId: ['ID!', 'The UUID of the currency that it applies to.'],
      priority: ['Int', 'The priority, 1 to 100; stored as sent.'],
      autoTransferRule: [autoTransfer, 'The automatic transfer.'],
      signAndApproveRule: [signAndApprove, 'The approvals that are required.'],
      permissionlessTransferLimitRule: [limit, 'The limit on transfers.'],
    },
  );
}

/** The input type that `walletRuleInputType` returns. */
export type WalletRuleInputType = ReturnType<typeof walletRuleInputType>;

/** Adds the enums of rules. */
export function addWalletRuleEnums(builder: Builder) {
  return {
    status: enumOf(builder, 'WalletRuleStatus', 'Whether a rule can fire.', {
      active: 'It fires when its conditions are true.',
      disabled: 'It is stored but never fires.',
    }),
    ruleType: enumOf<RuleType>(
      builder,
      'RuleType',
      'What a rule does.',
      {
        auto_transfer: 'Transfers an amount when its conditions are true.',
        permissionless_transfer_limit: 'Limits the transfers that need no approval.',
      },
      String,
    ),
    autoTransferType: enumOf<AutoTransferRule['type']>(
      builder,
      'AutoTransferType',
      'Whether an automatic transfer waits for approval.',
      { auto: 'It is made at once.', auto_with_approve: 'It waits for approval.' },
      String,
    ),
    timePeriod: enumOf<TimePeriod>(
      builder,
      'TimePeriod',
      'The period of the window of a limit.',
      {
        hour: '60 minutes.',
        day: '24 hours.',
        week: 'Seven days.',
        month: 'A calendar month in UTC.',
        year: 'A calendar year in UTC.',
      },
      String,
    ),
  };
}

/** The enums that `addWalletRuleEnums` returns. */
export type WalletRuleEnums = ReturnType<typeof addWalletRuleEnums>;

const IF_VERSION = 'The version that the rule must still have; otherwise PreconditionError.';
const REASON = {
  description: 'Why the rule is changed, at most 1,024 characters; its version keeps it.',
  validate: { schema: reasonInput },
};

/** Adds the mutations that create, replace and enable or disable wallet rules. */
export function addWalletRuleMutations(
  builder: Builder,
  { status: walletRuleStatus }: WalletRuleEnums,
  input: WalletRuleInputType,
): void {
  builder.mutationFields((t) => ({
    createWalletRule: t.field({
      type: 'WalletRule',
      ...IDEMPOTENT,
      ...needs('wallet-rules:write', 'Creates an active rule.', 'Takes an `Idempotency-Key`.'),
      errors: errorsOf(
        'The rule; or ValidationError: `input` is invalid, by the same rules as in REST; NotFoundError: there is no such wallet; ForbiddenError: the caller lacks wallet-rules:write.',
      ),
      args: {
        walletId: t.arg.id({ required: true, description: "The wallet's UUID." }),
        input: t.arg({ ...parsedArgument(input, walletRuleTextInput), description: 'The rule.' }),
      },
      resolve: (_root, { walletId, input: content }, context) =>
        orMember(context.services.walletRules.create(callerOf(context), walletId, content), context),
    }),
    replaceWalletRule: t.field({
      type: 'WalletRule',
      ...IDEMPOTENT,
      ...needs(
        'wallet-rules:write',
        'Replaces a rule in full and raises its version; its status does not change.',
        'Takes an `Idempotency-Key`.',
      ),
      errors: errorsOf(
        'The rule; or ValidationError: `input` is invalid, by the same rules as in REST; NotFoundError: there is no such wallet, or no such rule in it; PreconditionError: the version of the rule is not `ifVersion`; ForbiddenError: the caller lacks wallet-rules:write.',
        PreconditionError,
      ),
      args: {
        walletId: t.arg.id({ required: true, description: "The wallet's UUID." }),
        id: t.arg.id({ required: true, description: "The rule's UUID." }),
        input: t.arg({ ...parsedArgument(input, walletRuleTextInput), description: 'The whole new rule.' }),
        ifVersion: t.arg.int({ description: IF_VERSION }),
        reason: t.arg.string(REASON),
      },
      resolve: (_root, { walletId, id, ifVersion, reason, input: content }, context) =>
        orMember(
          context.services.walletRules.replace(
            { ...callerOf(context), reason },
            { walletId, id },
            content,
            typeof ifVersion === 'number' ? [ifVersion] : undefined,
          ),
          context,
        ),
    }),
    setWalletRuleStatus: t.field({
      type: 'WalletRule',
      ...needs('wallet-rules:write', 'Enables or disables a rule; a change raises its version.'),
      errors: errorsOf(
        'The rule; or NotFoundError: there is no such rule; PreconditionError: the version of the rule is not `ifVersion`; ForbiddenError: the caller lacks wallet-rules:write; ValidationError: `reason` is too long.',
        PreconditionError,
      ),
      args: {
        id: t.arg.id({ required: true, description: "The rule's UUID." }),
        status: t.arg({ type: walletRuleStatus, required: true, description: 'The new status.' }),
        ifVersion: t.arg.int({ description: IF_VERSION }),
        reason: t.arg.string(REASON),
      },
      resolve: (_root, { id, status, ifVersion, reason }, context) =>
        orMember(context.services.walletRules.setStatus({ ...callerOf(context), reason }, id, status, ifVersion)),
    }),
  }));
}

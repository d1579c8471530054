import type { Builder } from '../graphql/builder.ts';

/** The input of a rule, with the members of REST in camelCase. */
export function walletRuleInputType(builder: Builder) {
  const autoTransfer = builder.inputType('AutoTransferRuleInput', {
    description: 'When and what an automatic transfer moves.',
    fields: (t) => ({
      type: t.string({ required: true, description: '`auto` or `auto_with_approve`.' }),
      ruleLogic: t.field({
        type: 'JSON',
        required: true,
        description:
          'A condition {field, op, value, network_currency_id} or a group {and: […]}, {or: […]}, {not: {…}}, at most 8 deep and 64 conditions. `op` is lt, lte, gt, gte, eq or neq, or another spelling of one.',
      }),
      amount: t.field({ type: 'Decimal', required: true, description: 'How much is moved: more than 0.' }),
      targetWalletId: t.id({ required: true, description: 'The UUID of the wallet that it goes to.' }),
    }),
  });
  const signAndApprove = builder.inputType('SignAndApproveRuleInput', {
    description: 'Who must approve.',
    fields: (t) => ({
      mandatoryUserId: t.id({ description: 'The UUID of a user who must be among them.' }),
      minPriority: t.int({ description: 'The least priority of an approver, 1 to 100.' }),
      maxPriority: t.int({ description: 'The highest priority of an approver, 1 to 100.' }),
      minUserCount: t.int({ description: 'How many must approve, at least 1.' }),
    }),
  });
  const limit = builder.inputType('PermissionlessTransferLimitRuleInput', {
    description: 'How much may be transferred in a window of time.',
    fields: (t) => ({
      maxAmount: t.field({
        type: 'Decimal',
        required: true,
        description: 'The most in the window: a whole number above 0.',
      }),
      timePeriod: t.string({ required: true, description: '`hour`, `day`, `week`, `month` or `year`.' }),
      timePeriodValue: t.int({ required: true, description: 'How many such periods the window has, at least 1.' }),
    }),
  });
  return builder.inputType('WalletRuleInput', {
    description: 'A rule. The object of its type is required; that of the other type is kept, and never evaluated.',
    fields: (t) => ({
      name: t.string({ required: true, description: 'As people call it.' }),
      type: t.string({ required: true, description: '`auto_transfer` or `permissionless_transfer_limit`.' }),
      networkId: t.id({ required: true, description: 'The UUID of the network that it is for.' }),
      networkCurrencyId: t.id({ required: true, description: 'The UUID of the currency that it is for.' }),
      priority: t.int({ description: '1 to 100; kept as sent.' }),
      autoTransferRule: t.field({ type: autoTransfer, description: 'When and what to transfer.' }),
      signAndApproveRule: t.field({ type: signAndApprove, description: 'Who must approve.' }),
      permissionlessTransferLimitRule: t.field({ type: limit, description: 'How much may be transferred.' }),
    }),
  });
}

/** What `walletRuleInputType` gives. */
export type WalletRuleInputType = ReturnType<typeof walletRuleInputType>;

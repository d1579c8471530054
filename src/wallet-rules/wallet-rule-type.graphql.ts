import type { Builder } from '../graphql/builder.ts';
import type { Refs } from '../graphql/refs.ts';
import { isoFromPg } from '../lib/pg-time.ts';
import { shownLogic } from './rule-logic-view.ts';
import type { AutoTransferRule, PermissionlessTransferLimitRule, SignAndApproveRule } from './wallet-rule.ts';

/** The enum of a rule's status. */
export function walletRuleStatusEnum(builder: Builder) {
  return builder.enumType('WalletRuleStatus', {
    description: 'Whether a rule can fire.',
    values: {
      ACTIVE: { value: 'active', description: 'It fires where it holds.' },
      DISABLED: { value: 'disabled', description: 'It is kept, and never fires.' },
    } as const,
  });
}

/** What `walletRuleStatusEnum` gives. */
export type WalletRuleStatusEnum = ReturnType<typeof walletRuleStatusEnum>;

/** Implements the type of wallet rules. */
export function implementWalletRule(builder: Builder, { walletRule }: Refs, status: WalletRuleStatusEnum): void {
  const autoTransfer = autoTransferType(builder);
  const signAndApprove = signAndApproveType(builder);
  const limit = limitType(builder);
  walletRule.implement({
    description: 'A rule of a wallet.',
    fields: (t) => ({
      id: t.exposeID('id', { description: 'A UUID, the same as in REST.' }),
      walletId: t.exposeID('wallet_id', { description: 'The wallet that it belongs to.' }),
      name: t.exposeString('name', { description: 'As people call it.' }),
      type: t.exposeString('type', { description: '`auto_transfer` or `permissionless_transfer_limit`.' }),
      networkId: t.exposeID('network_id', { description: 'The network that it is for, as sent.' }),
      networkCurrencyId: t.exposeID('network_currency_id', { description: 'The currency that it is for, as sent.' }),
      priority: t.exposeInt('priority', { nullable: true, description: '1 to 100; kept as sent.' }),
      status: t.field({ type: status, description: 'Whether it can fire.', resolve: (row) => row.status }),
      version: t.exposeInt('version', { description: 'Raised by every change; the entity tag in REST.' }),
      autoTransferRule: t.field({
        type: autoTransfer,
        nullable: true,
        description: 'When and what to transfer; null where it was not sent.',
        resolve: (row) => row.auto_transfer_rule,
      }),
      signAndApproveRule: t.field({
        type: signAndApprove,
        nullable: true,
        description: 'Who must approve; null where it was not sent.',
        resolve: (row) => row.sign_and_approve_rule,
      }),
      permissionlessTransferLimitRule: t.field({
        type: limit,
        nullable: true,
        description: 'How much may be transferred in a window of time; null where it was not sent.',
        resolve: (row) => row.permissionless_transfer_limit_rule,
      }),
      createdAt: t.field({
        type: 'DateTime',
        description: 'When it was created.',
        resolve: (row) => isoFromPg(row.created_at),
      }),
      updatedAt: t.field({
        type: 'DateTime',
        description: 'When it was last changed.',
        resolve: (row) => isoFromPg(row.updated_at),
      }),
    }),
  });
}

function autoTransferType(builder: Builder) {
  return builder.objectRef<AutoTransferRule>('AutoTransferRule').implement({
    description: 'When and what an automatic transfer moves.',
    fields: (t) => ({
      type: t.exposeString('type', { description: '`auto`, or `auto_with_approve`: it waits for an approval.' }),
      ruleLogic: t.field({
        type: 'JSON',
        description: 'The condition tree in the shape of REST; its operators are in the short form.',
        resolve: (rule) => shownLogic(rule.rule_logic),
      }),
      amount: t.expose('amount', { type: 'Decimal', description: 'How much is moved.' }),
      targetWalletId: t.exposeID('target_wallet_id', { description: 'Where to, as sent.' }),
    }),
  });
}

function signAndApproveType(builder: Builder) {
  return builder.objectRef<SignAndApproveRule>('SignAndApproveRule').implement({
    description: 'Who must approve.',
    fields: (t) => ({
      mandatoryUserId: t.id({
        nullable: true,
        description: 'A user who must be among them, as sent.',
        resolve: (rule) => rule.mandatory_user_id,
      }),
      minPriority: t.int({
        nullable: true,
        description: 'The least priority of an approver, 1 to 100.',
        resolve: (rule) => rule.min_priority,
      }),
      maxPriority: t.int({
        nullable: true,
        description: 'The highest priority of an approver, 1 to 100.',
        resolve: (rule) => rule.max_priority,
      }),
      minUserCount: t.int({
        nullable: true,
        description: 'How many must approve, at least 1.',
        resolve: (rule) => rule.min_user_count,
      }),
    }),
  });
}

function limitType(builder: Builder) {
  return builder.objectRef<PermissionlessTransferLimitRule>('PermissionlessTransferLimitRule').implement({
    description: 'How much may be transferred in a window of time.',
    fields: (t) => ({
      maxAmount: t.expose('max_amount', { type: 'Decimal', description: 'The most in the window: a whole number.' }),
      timePeriod: t.exposeString('time_period', { description: '`hour`, `day`, `week`, `month` or `year`.' }),
      timePeriodValue: t.exposeInt('time_period_value', { description: 'How many such periods the window has.' }),
    }),
  });
}

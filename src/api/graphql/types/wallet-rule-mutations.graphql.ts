import { walletRuleTextInput } from '../../../domain/wallet-rules/wallet-rule.input.ts';
import { type Builder, needs } from '../kit/builder.ts';
import { parsedArgument } from '../kit/camel-input.ts';
import { callerOf } from '../kit/graphql-context.ts';
import {
  errorsOf,
  ForbiddenError,
  NotFoundError,
  orMember,
  PreconditionError,
  ValidationError,
} from '../kit/graphql-errors.ts';
import type { TypeRefs } from '../kit/type-refs.ts';

/** Adds the enum of a rule's status. */
export function walletRuleStatusEnum(builder: Builder) {
  return builder.enumType('WalletRuleStatus', {
    description: 'Whether a rule can fire.',
    values: {
      ACTIVE: { value: 'active', description: 'It fires when its conditions hold.' },
      DISABLED: { value: 'disabled', description: 'It is kept and never fires.' },
    } as const,
  });
}

/** The enum that `walletRuleStatusEnum` returns. */
export type WalletRuleStatusEnum = ReturnType<typeof walletRuleStatusEnum>;

/** Adds the input type of a rule, with the REST members in camelCase. */
export function walletRuleInputType(builder: Builder) {
  const autoTransfer = builder.inputType('AutoTransferRuleInput', {
    description: 'When and what an automatic transfer moves.',
    fields: (t) => ({
      type: t.string({ required: true, description: '`auto` or `auto_with_approve`.' }),
      ruleLogic: t.field({
        type: 'JSON',
        required: true,
        description:
          'A condition {field, op, value, network_currency_id} or a group {and: […]}, {or: […]}, {not: {…}}, at most 8 deep and 64 conditions. `op` is lt, lte, gt, gte, eq or neq, or another spelling of one. It is JSON that all interfaces share: unlike those around it, names in it are spelt as REST spells them (`network_currency_id`).',
      }),
      amount: t.field({ type: 'Decimal', required: true, description: 'How much is moved: more than 0.' }),
      targetWalletId: t.id({ required: true, description: 'The UUID of the wallet that it goes to.' }),
    }),
  });
  const signAndApprove = builder.inputType('SignAndApproveRuleInput', {
    description: 'Who must approve.',
    fields: (t) => ({
      mandatoryUserId: t.id({ description: 'The UUID of a user who must be among them.' }),
      minPriority: t.int({ description: 'The lowest priority of an approver, 1 to 100.' }),
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
        description: 'The maximum in the window: a whole number above 0.',
      }),
      timePeriod: t.string({ required: true, description: '`hour`, `day`, `week`, `month` or `year`.' }),
      timePeriodValue: t.int({ required: true, description: 'How many such periods the window has, at least 1.' }),
    }),
  });
  return builder.inputType('WalletRuleInput', {
    description:
      'A rule. The object of its type is required; the object of the other type is stored but not evaluated.',
    fields: (t) => ({
      name: t.string({ required: true, description: 'The display name.' }),
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

/** The input type that `walletRuleInputType` returns. */
export type WalletRuleInputType = ReturnType<typeof walletRuleInputType>;

interface MutationDependencies {
  input: WalletRuleInputType;
  status: WalletRuleStatusEnum;
}

const errorTypes = [ValidationError, NotFoundError, ForbiddenError];

/** Adds the mutations that create, replace and enable or disable wallet rules. */
export function addWalletRuleMutations(
  builder: Builder,
  { walletRule }: TypeRefs,
  { input, status }: MutationDependencies,
): void {
  builder.mutationFields((t) => ({
    createWalletRule: t.field({
      type: walletRule,
      ...needs('wallet-rules:write', 'Creates an active rule.', 'Takes an `Idempotency-Key`.'),
      errors: errorsOf(
        'CreateWalletRuleResult',
        errorTypes,
        'The rule; or ValidationError: `input` breaks a rule of REST; NotFoundError: the wallet; ForbiddenError: without wallet-rules:write.',
      ),
      args: {
        walletId: t.arg.id({ required: true, description: "The wallet's UUID." }),
        input: t.arg({ ...parsedArgument(input, walletRuleTextInput), description: 'The rule.' }),
      },
      resolve: (_root, { walletId, input: content }, context) =>
        orMember(context.services.walletRules.create(callerOf(context), walletId, content), context),
    }),
    replaceWalletRule: t.field({
      type: walletRule,
      ...needs(
        'wallet-rules:write',
        'Replaces a rule in full and raises its version; its status stays.',
        'Takes an `Idempotency-Key`.',
      ),
      errors: errorsOf(
        'ReplaceWalletRuleResult',
        [...errorTypes, PreconditionError],
        'The rule; or ValidationError: `input` breaks a rule of REST; NotFoundError: the wallet, or the rule in it; PreconditionError: it has another version than `ifVersion`; ForbiddenError: without wallet-rules:write.',
      ),
      args: {
        walletId: t.arg.id({ required: true, description: "The wallet's UUID." }),
        id: t.arg.id({ required: true, description: "The rule's UUID." }),
        input: t.arg({ ...parsedArgument(input, walletRuleTextInput), description: 'The whole new rule.' }),
        ifVersion: t.arg.int({
          description: 'The version that the rule must still have; otherwise PreconditionError.',
        }),
      },
      resolve: (_root, { walletId, id, ifVersion, input: content }, context) => {
        const versions = typeof ifVersion === 'number' ? [ifVersion] : undefined;
        const { walletRules } = context.services;
        return orMember(walletRules.replace(callerOf(context), { walletId, id }, content, versions), context);
      },
    }),
    setWalletRuleStatus: t.field({
      type: walletRule,
      ...needs('wallet-rules:write', 'Enables or disables a rule; a change raises its version.'),
      errors: errorsOf(
        'SetWalletRuleStatusResult',
        errorTypes,
        'The rule; or NotFoundError: the rule; ForbiddenError: without wallet-rules:write; ValidationError: not returned.',
      ),
      args: {
        id: t.arg.id({ required: true, description: "The rule's UUID." }),
        status: t.arg({ type: status, required: true, description: 'The new status.' }),
      },
      resolve: (_root, args, context) =>
        orMember(context.services.walletRules.setStatus(callerOf(context), args.id, args.status)),
    }),
  }));
}

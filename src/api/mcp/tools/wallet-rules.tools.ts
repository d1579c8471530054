import { z } from 'zod';
import { previewInput } from '../../../domain/wallet-rules/preview.service.ts';
import { walletRuleTextInput } from '../../../domain/wallet-rules/wallet-rule.input.ts';
import type { WalletRuleRow, WalletRuleVersionRow } from '../../../domain/wallet-rules/wallet-rules.service.ts';
import { objectInput, uuidInput, wholeNumberInput } from '../../../lib/input.ts';
import { isoFromPg } from '../../../lib/instants.ts';
import { ofOneOwner } from '../../../platform/database/keyset-list.ts';
import { AUTO_TRANSFER_TYPES, RULE_STATUSES, RULE_TYPES, TIME_PERIODS } from '../../../tables/wallet-rule-content.ts';
import { versionsOfRule } from '../../shared/lists.ts';
import { idempotencyKey, idempotentCall } from '../kit/idempotent-call.ts';
import type { Descriptions } from '../kit/json-schema.ts';
import { decimal, instant, listPage, pageArguments, pageOutput, uuid } from '../kit/list-tools.ts';
import { defineTool, found } from '../kit/tool.ts';

const autoTransfer = z.strictObject({
  type: z.enum(AUTO_TRANSFER_TYPES),
  rule_logic: z.looseObject({}).meta({
    description:
      'When it fires: a condition {field, op, value, network_currency_id}, or a group {and: […]}, {or: […]}, {not: {…}} of such.',
  }),
  amount: decimal(),
  target_wallet_id: uuid(),
});

const signAndApprove = z.strictObject({
  mandatory_user_id: uuid().optional(),
  min_priority: z.int().optional(),
  max_priority: z.int().optional(),
  min_user_count: z.int().optional(),
});

const transferLimit = z.strictObject({
  max_amount: decimal(),
  time_period: z.enum(TIME_PERIODS),
  time_period_value: z.int(),
});

const content = {
  name: z.string(),
  type: z.enum(RULE_TYPES),
  network_id: uuid(),
  network_currency_id: uuid(),
  priority: z.int().nullable(),
  auto_transfer_rule: autoTransfer.nullable(),
  sign_and_approve_rule: signAndApprove.nullable(),
  permissionless_transfer_limit_rule: transferLimit.nullable(),
  status: z.enum(RULE_STATUSES).meta({ description: 'A disabled rule is kept and never fires.' }),
};

const walletRule = z.strictObject({
  id: uuid(),
  wallet_id: uuid(),
  ...content,
  version: z.int().meta({ description: 'Increases with every change.' }),
  created_at: instant(),
  updated_at: instant(),
});

const walletRuleVersion = z.strictObject({
  version: z.int(),
  ...content,
  deleted: z.boolean().meta({ description: 'The end of the rule, which went with its wallet.' }),
  subject: z
    .string()
    .nullable()
    .meta({ description: 'Whose token made it: of a supervisor or client; null: unknown.' }),
  client_id: z.string().nullable().meta({ description: 'The client of that token.' }),
  correlation_id: z.string().nullable().meta({ description: 'The correlation id of the request.' }),
  at: instant(),
});

/** Returns the content of a rule or version as agents see it: the REST names, with every amount as text. */
function contentView(row: WalletRuleRow | WalletRuleVersionRow) {
  const { name, type, network_id, network_currency_id, priority, status } = row;
  const { auto_transfer_rule: own, sign_and_approve_rule, permissionless_transfer_limit_rule } = row;
  return {
    ...{ name, type, network_id, network_currency_id, priority },
    auto_transfer_rule: own && { ...own, rule_logic: { ...own.rule_logic } },
    ...{ sign_and_approve_rule, permissionless_transfer_limit_rule, status },
  };
}

function walletRuleView(row: WalletRuleRow): z.input<typeof walletRule> {
  const { id, wallet_id, version } = row;
  const times = { created_at: isoFromPg(row.created_at), updated_at: isoFromPg(row.updated_at) };
  return { id, wallet_id, ...contentView(row), version, ...times };
}

function versionView(row: WalletRuleVersionRow): z.input<typeof walletRuleVersion> {
  const { version, deleted, subject, client_id, correlation_id } = row;
  return { version, ...contentView(row), deleted, subject, client_id, correlation_id, at: isoFromPg(row.at) };
}

const walletId = uuidInput().meta({ description: "The rule's wallet, from list_wallets." });
const ruleId = uuidInput().meta({ description: 'The id, from list_wallet_rules.' });

/** The descriptions of a rule's members, by path, for the model that writes a rule. */
const RULE_MEMBERS: Descriptions = {
  rule: 'The whole rule. The object of its type is required: auto_transfer_rule or permissionless_transfer_limit_rule.',
  'rule.name': 'The display name.',
  'rule.type':
    'auto_transfer moves funds automatically; permissionless_transfer_limit limits transfers without approval.',
  'rule.network_id': 'From list_networks.',
  'rule.network_currency_id': 'The currency on that network, as other rules of the wallet name it.',
  'rule.priority': '1 to 100; kept as given.',
  'rule.auto_transfer_rule': 'When and what to move; required for auto_transfer.',
  'rule.auto_transfer_rule.type': 'auto moves at once; auto_with_approve waits for an approval.',
  'rule.auto_transfer_rule.rule_logic':
    'When it fires: a condition {field, op, value, network_currency_id}, or a group {and: […]}, {or: […]}, {not: {…}} of conditions and groups; at most 8 deep, 64 conditions.',
  'rule.auto_transfer_rule.amount': 'How much is moved, in units of the currency: more than 0, such as "250.00".',
  'rule.auto_transfer_rule.target_wallet_id': 'The target wallet.',
  'rule.sign_and_approve_rule': 'Who must approve; every member is optional.',
  'rule.sign_and_approve_rule.mandatory_user_id': 'A user who must be among the approvers.',
  'rule.sign_and_approve_rule.min_priority': 'The lowest priority of an approver.',
  'rule.sign_and_approve_rule.max_priority': 'The highest priority of an approver.',
  'rule.sign_and_approve_rule.min_user_count': 'How many must approve.',
  'rule.permissionless_transfer_limit_rule': 'How much may go out; required for permissionless_transfer_limit.',
  'rule.permissionless_transfer_limit_rule.max_amount': 'The maximum in the window: a whole number of units above 0.',
  'rule.permissionless_transfer_limit_rule.time_period': 'The unit of the window.',
  'rule.permissionless_transfer_limit_rule.time_period_value': 'How many such units the window has.',
};

const MAX_VERSION = 2_147_483_647;

export const walletRuleTools = [
  defineTool({
    name: 'list_wallet_rules',
    title: 'List the rules of a wallet',
    description: "A wallet's rules, active and disabled, oldest first.",
    scope: 'wallet-rules:read',
    input: objectInput({ wallet_id: walletId, ...pageArguments }),
    output: pageOutput(walletRule),
    missing: 'this node has no wallet with that wallet_id: take it from list_wallets',
    async run({ wallet_id: id, ...page }, call) {
      found(await call.services.walletPages.find(call.caller.nodeId, id));
      return listPage(page, call, {
        tool: 'list_wallet_rules',
        list: ({ walletRulePages }) => ofOneOwner(walletRulePages.ofWallets),
        filter: id,
        viewOf: walletRuleView,
      });
    },
  }),
  defineTool({
    name: 'get_wallet_rule',
    title: 'Get a wallet rule',
    description: 'One rule by its id, with its version.',
    scope: 'wallet-rules:read',
    input: objectInput({ rule_id: ruleId }),
    output: walletRule,
    missing: 'this node has no rule with that rule_id: take it from list_wallet_rules',
    run: async ({ rule_id: id }, { caller, services }) =>
      walletRuleView(found(await services.walletRulePages.find(caller.nodeId, id))),
  }),
  defineTool({
    name: 'list_wallet_rule_versions',
    title: 'List the versions of a wallet rule',
    description:
      'Every version of a rule with its author and time, newest first. Also of a rule that was deleted with its wallet.',
    scope: 'wallet-rules:read',
    input: objectInput({ rule_id: ruleId, ...pageArguments }),
    output: pageOutput(walletRuleVersion),
    missing: 'this node never had a rule with that rule_id: take it from list_wallet_rules',
    run: ({ rule_id: id, ...page }, call) =>
      listPage(page, call, {
        tool: 'list_wallet_rule_versions',
        list: versionsOfRule,
        filter: id,
        viewOf: versionView,
      }),
  }),
  defineTool({
    name: 'preview_wallet_rule',
    title: 'Preview a wallet rule',
    description:
      'Evaluates whether a rule would fire for the balances and transfers that you give, with the result of each condition. Changes nothing and reads no balances. Give either rule, or rule_id of a stored rule. A condition that the facts do not cover is false, with a reason.',
    scope: 'wallet-rules:read',
    input: previewInput,
    describes: {
      ...RULE_MEMBERS,
      rule_id: 'A stored rule, from list_wallet_rules; or give rule.',
      balances: 'What the wallet has; may be empty.',
      'balances.field': 'The field\'s name, as conditions have it, such as "target.balance".',
      'balances.network_currency_id': 'The currency of value.',
      'balances.value': 'In units of the currency.',
      transfers:
        'For a limit: what was moved. A limit counts those of its currency in its window; without a list it cannot.',
      'transfers.amount': 'In units of the currency: 0 or more.',
      'transfers.at': 'When it was or will be made.',
      at: 'The time of the evaluation; now by default.',
    },
    output: z.strictObject({
      fires: z.boolean().meta({
        description: 'auto_transfer: the transfer would be made. A limit: the transfers stay within it.',
      }),
      explanation: z.array(
        z.strictObject({
          path: z.string().meta({ description: 'The path of the condition in the rule.' }),
          field: z.string(),
          op: z.string(),
          expected: decimal().nullable(),
          actual: decimal().nullable().meta({ description: 'The value in the facts; null if they have none.' }),
          result: z.boolean(),
          reason: z.string().nullable().meta({ description: 'Why it could not be evaluated.' }),
        }),
      ),
    }),
    missing: 'this node has no rule with that rule_id: take it from list_wallet_rules, or give rule',
    async run(input, { caller, services }) {
      const { fires, explanation } = await services.walletRulePreviews.preview(caller.nodeId, input);
      return {
        fires,
        explanation: explanation.map(({ path, field, op, expected, actual, result, reason }) => {
          return {
            path,
            field,
            op,
            expected: expected ?? null,
            actual: actual ?? null,
            result,
            reason: reason ?? null,
          };
        }),
      };
    },
  }),
  defineTool({
    name: 'create_wallet_rule',
    title: 'Create a wallet rule',
    description:
      'Creates a rule for a wallet, active at once. Another call creates another rule, unless it has the same idempotency_key. Try it with preview_wallet_rule first.',
    scope: 'wallet-rules:write',
    effect: { isDestructive: false, isIdempotent: false },
    input: objectInput({ wallet_id: walletId, rule: walletRuleTextInput, idempotency_key: idempotencyKey }),
    describes: RULE_MEMBERS,
    output: walletRule,
    missing: 'this node has no wallet with that wallet_id: take it from list_wallets',
    run({ idempotency_key: key, ...input }, call) {
      const { wallet_id: id, rule } = input;
      const work = async () => walletRuleView(await call.services.walletRules.create(call.caller, id, rule));
      return idempotentCall(call, { name: 'create_wallet_rule', key, input, work });
    },
  }),
  defineTool({
    name: 'replace_wallet_rule',
    title: 'Replace a wallet rule',
    description:
      'Replaces a rule in full: what you omit is removed, so begin with what get_wallet_rule returns. Raises its version, keeps its status. Give if_version, so that no change in between is lost.',
    scope: 'wallet-rules:write',
    effect: { isDestructive: true, isIdempotent: false },
    input: objectInput({
      wallet_id: walletId,
      rule_id: ruleId,
      rule: walletRuleTextInput,
      if_version: wholeNumberInput(1, MAX_VERSION)
        .optional()
        .meta({ description: 'Replaces this version of the rule only, from get_wallet_rule.' }),
    }),
    describes: RULE_MEMBERS,
    output: walletRule,
    missing:
      'this node has no wallet with that wallet_id, or the wallet no rule with that rule_id: list_wallet_rules has both',
    async run({ wallet_id: walletId, rule_id: id, rule, if_version: version }, call) {
      const versions = version === undefined ? undefined : [version];
      return walletRuleView(await call.services.walletRules.replace(call.caller, { walletId, id }, rule, versions));
    },
  }),
  defineTool({
    name: 'set_wallet_rule_status',
    title: 'Enable or disable a wallet rule',
    description: 'Sets whether a rule can fire; nothing else of it changes. Disabling can be undone by the same tool.',
    scope: 'wallet-rules:write',
    effect: { isDestructive: false, isIdempotent: true },
    input: objectInput({
      rule_id: ruleId,
      status: z
        .enum(RULE_STATUSES, `must be one of ${RULE_STATUSES.join(', ')}`)
        .meta({ description: 'disabled: the rule is kept and never fires.' }),
    }),
    output: walletRule,
    missing: 'this node has no rule with that rule_id: take it from list_wallet_rules',
    run: async ({ rule_id: id, status }, call) =>
      walletRuleView(await call.services.walletRules.setStatus(call.caller, id, status)),
  }),
];

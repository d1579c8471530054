import { z } from 'zod';
import {
  type Descriptions,
  defineTool,
  idempotencyKey,
  idempotentCall,
  invalidArguments,
  listPage,
  pageArguments,
  pageOutput,
  publishedSchemas,
  type Schema,
  ToolError,
} from '../../api/mcp/kit/tool.ts';
import { instant, uuid } from '../../lib/fields.ts';
import { objectInput, uuidInput, wholeNumberInput } from '../../lib/input.ts';
import { isoFromPg } from '../../lib/instants.ts';
import { orNotFound } from '../../platform/errors.ts';
import { OPERATORS, RULE_STATUSES, RULE_TYPES } from '../../tables/wallet-rule-content.ts';
import { previewMembers, priceOfWalletPreview } from './preview.service.ts';
import { MAX_INT32, reasonInput, ruleLogicTextInput, walletRuleTextInput } from './wallet-rule.input.ts';
import {
  rulesOfTenant,
  versionsOfRule,
  type WalletRuleRow,
  type WalletRuleVersionRow,
} from './wallet-rules.service.ts';

/**
 * The JSON Schema of a condition tree. It does not refer to itself, because not every host of a model resolves `$ref`.
 */
const LOGIC: Schema = {
  type: 'object',
  properties: {
    field: { type: 'string', description: 'In a condition: the compared field, such as "target.balance".' },
    op: { type: 'string', enum: [...OPERATORS], description: 'In a condition.' },
    value: { type: 'string', description: 'In a condition: an exact decimal, "1000.50".' },
    network_currency_id: { type: 'string', format: 'uuid', description: 'In a condition: the currency of value.' },
    and: { type: 'array', items: { type: 'object' }, minItems: 1, description: 'In a group: all of these are true.' },
    or: { type: 'array', items: { type: 'object' }, minItems: 1, description: 'In a group: one of these is true.' },
    not: { type: 'object', description: 'In a group: this is false.' },
  },
};

publishedSchemas.set(ruleLogicTextInput, () => LOGIC);

/** The schema of a part of a rule; tools that write rules publish it in full. */
const part = () => z.looseObject({}).nullable();

const content = {
  name: z.string(),
  type: z.enum(RULE_TYPES),
  network_id: uuid(),
  network_currency_id: uuid(),
  priority: z.int().nullable(),
  auto_transfer_rule: part(),
  sign_and_approve_rule: part(),
  permissionless_transfer_limit_rule: part(),
  status: z.enum(RULE_STATUSES).meta({ description: 'A disabled rule is stored but never fires.' }),
};

const walletRule = z.strictObject({
  id: uuid(),
  wallet_id: uuid(),
  ...content,
  version: z.int().meta({ description: 'Increases with every change.' }),
  created_at: instant(),
  updated_at: instant(),
});

/** A version has the members of the rule from `name` to `status` besides its own. */
const walletRuleVersion = z.looseObject({
  version: z.int(),
  deleted: z.boolean().meta({ description: 'Whether this version is the deletion of the rule with its wallet.' }),
  subject: z
    .string()
    .nullable()
    .meta({ description: 'The supervisor or client that made the change; null if unknown.' }),
  client_id: z.string().nullable().meta({ description: 'The client of that token.' }),
  correlation_id: z.string().nullable().meta({ description: 'The correlation id of the request.' }),
  reason: z.string().nullable().meta({ description: 'Why it was changed.' }),
  at: instant(),
});

/** Returns the content of a rule or version as agents see it: the REST names, with every amount as text. */
function contentView(row: WalletRuleRow | WalletRuleVersionRow) {
  const { name, type, network_id, network_currency_id, priority, status } = row;
  const { auto_transfer_rule: transfer, sign_and_approve_rule: approval } = row;
  const { permissionless_transfer_limit_rule: limit } = row;
  return {
    ...{ name, type, network_id, network_currency_id, priority },
    auto_transfer_rule: transfer && { ...transfer },
    sign_and_approve_rule: approval && { ...approval },
    permissionless_transfer_limit_rule: limit && { ...limit },
    status,
  };
}

function walletRuleView(row: WalletRuleRow): z.input<typeof walletRule> {
  const { id, wallet_id, version } = row;
  const times = { created_at: isoFromPg(row.created_at), updated_at: isoFromPg(row.updated_at) };
  return { id, wallet_id, ...contentView(row), version, ...times };
}

function versionView(row: WalletRuleVersionRow): z.input<typeof walletRuleVersion> {
  const { version, deleted, subject, client_id, correlation_id, reason } = row;
  return { version, ...contentView(row), deleted, subject, client_id, correlation_id, reason, at: isoFromPg(row.at) };
}

const walletId = uuidInput().meta({ description: "The rule's wallet, from list_wallets." });
const ruleId = uuidInput().meta({ description: 'The id, from list_wallet_rules.' });

/** The descriptions of a rule's members, by path, for the model that writes a rule. */
const RULE_MEMBERS: Descriptions = {
  rule: 'The complete rule. The object of its type is required: auto_transfer_rule or permissionless_transfer_limit_rule.',
  'rule.name': 'The display name.',
  'rule.type':
    'auto_transfer moves funds automatically; permissionless_transfer_limit limits transfers without approval.',
  'rule.network_id': 'From list_networks.',
  'rule.network_currency_id': 'A currency of that network, from list_networks.',
  'rule.priority': '1 to 100; stored as given.',
  'rule.auto_transfer_rule': 'When and how much to transfer; required for auto_transfer.',
  'rule.auto_transfer_rule.type': 'auto transfers immediately; auto_with_approve waits for an approval.',
  'rule.auto_transfer_rule.rule_logic':
    'When it fires: a condition {field, op, value, network_currency_id}, or a group {and: […]}, {or: […]}, {not: {…}} of conditions and groups; at most 8 deep, 64 conditions.',
  'rule.auto_transfer_rule.amount': 'The amount to transfer, in units of the currency: more than 0, such as "250.00".',
  'rule.auto_transfer_rule.target_wallet_id': 'The target wallet.',
  'rule.sign_and_approve_rule': 'Who must approve; all members are optional.',
  'rule.sign_and_approve_rule.mandatory_user_id': 'A user who must be among the approvers.',
  'rule.sign_and_approve_rule.min_priority': 'The lowest priority of an approver.',
  'rule.sign_and_approve_rule.max_priority': 'The highest priority of an approver.',
  'rule.sign_and_approve_rule.min_user_count': 'The number of approvers.',
  'rule.permissionless_transfer_limit_rule':
    'How much may be transferred out; required for permissionless_transfer_limit.',
  'rule.permissionless_transfer_limit_rule.max_amount':
    'The maximum in the window: a whole number of units greater than 0.',
  'rule.permissionless_transfer_limit_rule.time_period': 'The unit of the window.',
  'rule.permissionless_transfer_limit_rule.time_period_value': 'The length of the window in these units.',
};

/** Members that get_wallet_rule returns and no rule takes: they may be sent back. */
const READ_ONLY = ['id', 'wallet_id', 'status', 'version', 'created_at', 'updated_at'].map((name) => `rule.${name}`);

export const walletRuleTools = [
  defineTool({
    name: 'list_wallet_rules',
    title: 'List the rules of a wallet',
    description: "Lists a wallet's rules, active and disabled, oldest first.",
    scope: 'wallet-rules:read',
    input: objectInput({ wallet_id: walletId, ...pageArguments }),
    output: pageOutput(walletRule),
    missing: 'this tenant has no wallet with that wallet_id: get it from list_wallets',
    run: ({ wallet_id: id, ...page }, call) =>
      listPage(page, call, {
        tool: 'list_wallet_rules',
        list: rulesOfTenant,
        filter: { walletId: id },
        viewOf: walletRuleView,
      }),
  }),
  defineTool({
    name: 'get_wallet_rule',
    title: 'Get a wallet rule',
    description:
      'Returns a rule, and on request its versions with their authors and times. rule is null if it was deleted with its wallet: only versions remain.',
    scope: 'wallet-rules:read',
    input: objectInput({
      rule_id: ruleId,
      versions: pageArguments.limit.meta({
        description: 'How many of its versions to include, newest first; none by default.',
      }),
      cursor: pageArguments.cursor,
    }),
    output: z.strictObject({ rule: walletRule.nullable(), versions: pageOutput(walletRuleVersion).optional() }),
    missing: 'this tenant has no rule with that rule_id: get it from list_wallet_rules',
    async run({ rule_id: id, versions: limit, cursor }, call) {
      const row = await call.services.walletRulePages.find(call.caller.nodeId, id);
      if (limit === undefined && cursor === undefined) return { rule: walletRuleView(orNotFound(row)) };
      const list = { tool: 'get_wallet_rule', list: versionsOfRule, filter: id, viewOf: versionView };
      return { rule: row ? walletRuleView(row) : null, versions: await listPage({ limit, cursor }, call, list) };
    },
  }),
  defineTool({
    name: 'preview_wallet_rule',
    title: 'Preview wallet rules',
    description:
      'Evaluates whether a rule would fire with the balances and transfers that you pass, and explains each condition. Changes nothing and reads no balances. Pass one of rule, rule_id or wallet_id.',
    scope: 'wallet-rules:read',
    input: objectInput(previewMembers).refine(
      ({ rule, rule_id, wallet_id }) =>
        rule ? rule_id === undefined : (rule_id ?? wallet_id) !== undefined && !(rule_id && wallet_id),
      { path: ['rule'], message: 'must be a rule, or pass either rule_id or wallet_id instead' },
    ),
    describes: {
      rule: 'The complete rule, as for create_wallet_rule.',
      rule_id: 'A stored rule, from list_wallet_rules.',
      wallet_id: 'Previews every active rule of this wallet (at most 500). With rule: the wallet that it is for.',
      balances: 'The balances of the wallet; may be empty.',
      'balances.field': 'The field as in the conditions, such as "target.balance".',
      'balances.network_currency_id': 'The currency of value.',
      'balances.value': 'In units of the currency.',
      transfers: 'For a limit: the transfers so far. It adds up those of its currency within its window.',
      'transfers.amount': 'In units of the currency: 0 or more.',
      'transfers.at': 'The time of the transfer.',
      at: 'Now by default.',
    },
    output: z.strictObject({
      fires: z.boolean().optional().meta({
        description: 'Whether the transfer would be made, or the transfers stay within the limit.',
      }),
      explanation: z
        .array(
          z.strictObject({
            path: z.string().meta({ description: 'Its path in the rule.' }),
            field: z.string(),
            op: z.enum(OPERATORS),
            expected: z.string().nullable(),
            actual: z.string().nullable().meta({ description: 'The value that you passed.' }),
            result: z.boolean(),
            reason: z.string().nullable().meta({ description: 'Why it could not be evaluated.' }),
          }),
        )
        .optional(),
      warnings: z
        .array(z.looseObject({}))
        .optional()
        .meta({ description: 'path and message of what can hardly be meant: a target on another chain.' }),
      rules: z.array(z.looseObject({})).optional().meta({
        description:
          'With wallet_id alone: rule_id, name, type, priority and fires of each rule, highest priority first; unmet is the first condition that keeps it from firing.',
      }),
    }),
    missing: 'this tenant has no such rule or wallet: get rule_id from list_wallet_rules, wallet_id from list_wallets',
    async run(input, { caller: { nodeId }, services: { walletRulePreviews }, maxCost }) {
      const { wallet_id: id } = input;
      if (id === undefined || input.rule) {
        const { rule, walletId, ...evaluation } = await walletRulePreviews.preview(nodeId, input);
        return {
          ...evaluation,
          warnings: (await walletRulePreviews.warnings(nodeId, { rule, walletId })).map((warning) => ({ ...warning })),
        };
      }
      const cost = priceOfWalletPreview(input.balances.length + (input.transfers?.length ?? 0));
      const message = `the cost is ${cost}; at most ${maxCost} is allowed: pass fewer balances and transfers, or preview its rules by rule_id`;
      if (cost > maxCost) throw new ToolError({ code: 'limit_exceeded', message });
      return walletRulePreviews.previewWallet(nodeId, id, input);
    },
  }),
  defineTool({
    name: 'create_wallet_rule',
    title: 'Create a wallet rule',
    description:
      'Creates a rule for a wallet; it is active immediately. Each call creates another rule, unless it has the same idempotency_key. Try the rule with preview_wallet_rule first.',
    scope: 'wallet-rules:write',
    writes: { destructiveHint: false, idempotentHint: false },
    input: objectInput({ wallet_id: walletId, rule: walletRuleTextInput, idempotency_key: idempotencyKey }),
    describes: RULE_MEMBERS,
    output: walletRule,
    missing: 'this tenant has no wallet with that wallet_id: get it from list_wallets',
    run({ idempotency_key: key, ...input }, call) {
      const { wallet_id: id, rule } = input;
      const work = async () => walletRuleView(await call.services.walletRules.create(call.caller, id, rule));
      return idempotentCall(call, { name: 'create_wallet_rule', key, input, work });
    },
  }),
  defineTool({
    name: 'replace_wallet_rule',
    title: 'Replace, enable or disable a wallet rule',
    description:
      'Pass rule to replace a rule completely: members that you omit are removed, so start from the result of get_wallet_rule; the status does not change. Or pass status to change only the status. Increments the version.',
    scope: 'wallet-rules:write',
    writes: { destructiveHint: true, idempotentHint: false },
    input: objectInput({
      rule_id: ruleId,
      rule: walletRuleTextInput.optional(),
      if_version: wholeNumberInput(1, MAX_INT32)
        .optional()
        .meta({ description: 'With rule: replaces this version only.' }),
      status: z
        .enum(RULE_STATUSES, `must be one of ${RULE_STATUSES.join(', ')}`)
        .optional()
        .meta({ description: 'disabled: the rule is stored but never fires.' }),
      reason: reasonInput.optional().meta({ description: 'Why; its version keeps it.' }),
    }),
    describes: { rule: 'The complete rule, as for create_wallet_rule.' },
    ignores: READ_ONLY,
    output: walletRule,
    missing: 'this tenant has no rule with that rule_id: get it from list_wallet_rules',
    async run({ rule_id: id, rule, if_version: version, status, reason }, call) {
      const { walletRules, walletRulePages } = call.services;
      const author = { ...call.caller, reason };
      if (status !== undefined && rule === undefined && version === undefined)
        return walletRuleView(await walletRules.setStatus(author, id, status));
      if (rule === undefined || status !== undefined)
        throw invalidArguments([
          { path: 'rule', message: 'is required, with or without if_version; or pass only status' },
        ]);
      const { wallet_id: walletId } = orNotFound(await walletRulePages.find(call.caller.nodeId, id));
      const versions = version === undefined ? undefined : [version];
      return walletRuleView(await walletRules.replace(author, { walletId, id }, rule, versions));
    },
  }),
];

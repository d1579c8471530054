import { z } from 'zod';
import { uuidInput } from '../../lib/input.ts';
import { isoFromPg } from '../../lib/pg-time.ts';
import { AUTO_TRANSFER_TYPES, RULE_STATUSES, RULE_TYPES, TIME_PERIODS } from '../../wallet-rules/wallet-rule.ts';
import type { WalletRuleRow } from '../../wallet-rules/wallet-rule-pages.service.ts';
import type { Descriptions } from '../json-schema.ts';
import { decimal, instant, uuid } from '../members.ts';

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

export const walletRule = z.strictObject({
  id: uuid(),
  wallet_id: uuid(),
  name: z.string(),
  type: z.enum(RULE_TYPES),
  network_id: uuid(),
  network_currency_id: uuid(),
  priority: z.int().nullable(),
  auto_transfer_rule: autoTransfer.nullable(),
  sign_and_approve_rule: signAndApprove.nullable(),
  permissionless_transfer_limit_rule: transferLimit.nullable(),
  status: z.enum(RULE_STATUSES).meta({ description: 'A disabled rule is kept and never fires.' }),
  version: z.int().meta({ description: 'Raised by every change.' }),
  created_at: instant(),
  updated_at: instant(),
});

/** A rule as agents see it: in the names of REST, with every amount as a text. */
export function walletRuleView(row: WalletRuleRow): z.input<typeof walletRule> {
  const { node_id: _node, rule_logic: _logic, ...rest } = { rule_logic: undefined, ...row };
  const { auto_transfer_rule: own } = row;
  return {
    ...rest,
    auto_transfer_rule: own && { ...own, rule_logic: { ...own.rule_logic } },
    created_at: isoFromPg(row.created_at),
    updated_at: isoFromPg(row.updated_at),
  };
}

export const walletId = uuidInput().meta({ description: 'The wallet that the rule is of; from list_wallets.' });
export const ruleId = uuidInput().meta({ description: 'From list_wallet_rules.' });

/** What the members of a rule mean, for whoever writes one. */
export const RULE_MEMBERS: Descriptions = {
  rule: 'The whole rule. The object of its type is required: auto_transfer_rule or permissionless_transfer_limit_rule.',
  'rule.name': 'As people call it.',
  'rule.type':
    'auto_transfer moves funds by itself; permissionless_transfer_limit caps what goes out without approval.',
  'rule.network_id': 'From list_networks.',
  'rule.network_currency_id': 'The currency on that network, as other rules of the wallet name it.',
  'rule.priority': '1 to 100; kept as given.',
  'rule.auto_transfer_rule': 'When and what to move; required for auto_transfer.',
  'rule.auto_transfer_rule.type': 'auto moves at once; auto_with_approve waits for an approval.',
  'rule.auto_transfer_rule.rule_logic':
    'When it fires: a condition {field, op, value, network_currency_id}, or a group {and: […]}, {or: […]}, {not: {…}} of conditions and groups; at most 8 deep, 64 conditions.',
  'rule.auto_transfer_rule.amount': 'How much is moved, in units of the currency: more than 0, such as "250.00".',
  'rule.auto_transfer_rule.target_wallet_id': 'Where to.',
  'rule.sign_and_approve_rule': 'Who must approve; every member is optional.',
  'rule.sign_and_approve_rule.mandatory_user_id': 'A user who must be among the approvers.',
  'rule.sign_and_approve_rule.min_priority': 'The least priority of an approver.',
  'rule.sign_and_approve_rule.max_priority': 'The highest priority of an approver.',
  'rule.sign_and_approve_rule.min_user_count': 'How many must approve.',
  'rule.permissionless_transfer_limit_rule': 'How much may go out; required for permissionless_transfer_limit.',
  'rule.permissionless_transfer_limit_rule.max_amount': 'The most in the window: a whole number of units above 0.',
  'rule.permissionless_transfer_limit_rule.time_period': 'The unit of the window.',
  'rule.permissionless_transfer_limit_rule.time_period_value': 'How many such units the window has.',
};

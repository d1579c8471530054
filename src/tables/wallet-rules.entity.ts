import { defineEntity, p } from '@mikro-orm/core';

/** The types that a wallet rule can have (specification section 2.6). */
export const RULE_TYPES = ['auto_transfer', 'permissionless_transfer_limit'] as const;
/** What an automatic transfer waits for: nothing, or an approval. */
export const AUTO_TRANSFER_TYPES = ['auto', 'auto_with_approve'] as const;
/** The unit of a limit's window. */
export const TIME_PERIODS = ['hour', 'day', 'week', 'month', 'year'] as const;
/** A rule that is disabled is kept and never fires. */
export const RULE_STATUSES = ['active', 'disabled'] as const;

/** How a condition compares what there is with what it expects, in the short form that is stored. */
export const OPERATORS = ['lt', 'lte', 'gt', 'gte', 'eq', 'neq'] as const;

export type Operator = (typeof OPERATORS)[number];
type RuleType = (typeof RULE_TYPES)[number];
export type TimePeriod = (typeof TIME_PERIODS)[number];
export type RuleStatus = (typeof RULE_STATUSES)[number];

/** A leaf of a condition tree: `value` is an exact decimal in plain digits. */
export interface Condition {
  field: string;
  op: Operator;
  value: string;
  network_currency_id: string;
}

/** A condition tree: at most 8 deep and 64 leaves, and no group is empty. */
export type RuleLogic = Condition | { and: RuleLogic[] } | { or: RuleLogic[] } | { not: RuleLogic };

/** When and what an automatic transfer moves; `amount` is an exact decimal in plain digits. */
export interface AutoTransferRule {
  type: (typeof AUTO_TRANSFER_TYPES)[number];
  rule_logic: RuleLogic;
  amount: string;
  target_wallet_id: string;
}

/** Who must approve. */
export interface SignAndApproveRule {
  mandatory_user_id?: string | undefined;
  min_priority?: number | undefined;
  max_priority?: number | undefined;
  min_user_count?: number | undefined;
}

/** How much may be transferred in a window of time; `max_amount` is a whole number in plain digits. */
export interface PermissionlessTransferLimitRule {
  max_amount: string;
  time_period: TimePeriod;
  time_period_value: number;
}

/** A wallet rule as it is written (specification section 2.6); spellings and numbers are in the form that is stored. */
export interface WalletRuleContent {
  name: string;
  type: RuleType;
  network_id: string;
  network_currency_id: string;
  priority?: number | undefined;
  auto_transfer_rule?: AutoTransferRule | undefined;
  sign_and_approve_rule?: SignAndApproveRule | undefined;
  permissionless_transfer_limit_rule?: PermissionlessTransferLimitRule | undefined;
}

/**
 * A rule of a wallet (specification section 2.6). Decimals stand as strings in the JSON columns, which keeps every
 * digit whoever reads them. The ids of networks, currencies, target wallet and user are those that were sent.
 */
export const WalletRule = defineEntity({
  name: 'WalletRule',
  tableName: 'wallet_rules',
  properties: {
    id: p.uuid().primary(),
    nodeId: p.uuid(),
    walletId: p.uuid(),
    name: p.text(),
    type: p.text().$type<RuleType>(),
    networkId: p.uuid(),
    networkCurrencyId: p.uuid(),
    priority: p.smallint().nullable(),
    autoTransferRule: p.json().$type<AutoTransferRule>().nullable(),
    signAndApproveRule: p.json().$type<SignAndApproveRule>().nullable(),
    permissionlessTransferLimitRule: p.json().$type<PermissionlessTransferLimitRule>().nullable(),
    status: p.text().$type<RuleStatus>().default('active'),
    version: p.integer().default(1),
    createdAt: p.datetime(6).$type<string>(),
    updatedAt: p.datetime(6).$type<string>(),
  },
});

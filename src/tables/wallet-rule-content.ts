/** The types of a wallet rule (docs/contract.md, 2.6). */
export const RULE_TYPES = ['auto_transfer', 'permissionless_transfer_limit'] as const;
/** The types of an automatic transfer: without approval or with it. */
export const AUTO_TRANSFER_TYPES = ['auto', 'auto_with_approve'] as const;
/** The units of time for the window of a transfer limit. */
export const TIME_PERIODS = ['hour', 'day', 'week', 'month', 'year'] as const;
/** The states of a wallet rule. A disabled rule is stored but never applied. */
export const RULE_STATUSES = ['active', 'disabled'] as const;

/** The comparison operators of a condition, in the short form in which they are stored. */
export const OPERATORS = ['lt', 'lte', 'gt', 'gte', 'eq', 'neq'] as const;

export type Operator = (typeof OPERATORS)[number];
export type RuleType = (typeof RULE_TYPES)[number];
export type TimePeriod = (typeof TIME_PERIODS)[number];
export type RuleStatus = (typeof RULE_STATUSES)[number];

/** A leaf of a condition tree, which compares a field with `value`, an exact decimal without an exponent. */
export interface Condition {
  field: string;
  op: Operator;
  value: string;
  network_currency_id: string;
}

/** A condition tree: at most 8 levels deep, with at most 64 leaves and no empty group. */
export type RuleLogic = Condition | { and: RuleLogic[] } | { or: RuleLogic[] } | { not: RuleLogic };

/**
 * The content of an automatic transfer rule: its condition, target wallet, and `amount`, an exact decimal without an
 * exponent.
 */
export interface AutoTransferRule {
  type: (typeof AUTO_TRANSFER_TYPES)[number];
  rule_logic: RuleLogic;
  amount: string;
  target_wallet_id: string;
}

/**
 * The approvals that a rule requires: optionally a certain user, a number of users, and a range of their priorities.
 */
export interface SignAndApproveRule {
  mandatory_user_id?: string | undefined;
  min_priority?: number | undefined;
  max_priority?: number | undefined;
  min_user_count?: number | undefined;
}

/**
 * The highest amount that may be transferred within a window of time. `max_amount` is a whole number as decimal digits.
 */
export interface PermissionlessTransferLimitRule {
  max_amount: string;
  time_period: TimePeriod;
  time_period_value: number;
}

/**
 * The content of a wallet rule (docs/contract.md, 2.6), with operators and numbers in the form in which they are
 * stored.
 */
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

import { compareDecimals, sumOfDecimals } from '../../lib/decimal.ts';
import { compareInstants, type Instant } from '../../lib/instants.ts';
import {
  type Condition,
  OPERATORS,
  type Operator,
  type PermissionlessTransferLimitRule,
  type RuleLogic,
  type RuleStatus,
  type SignAndApproveRule,
  type TimePeriod,
  type WalletRuleContent,
} from '../../tables/wallet-rule-content.ts';

/** The further spellings of each operator. In words, `-` may replace `_`. */
const SPELLINGS: Record<Operator, readonly string[]> = {
  lt: ['<', 'less_than'],
  lte: ['<=', 'less_than_or_equal', 'less_than_or_equal_to', 'less_than_or_equals'],
  gt: ['>', 'greater_than'],
  gte: ['>=', 'greater_than_or_equal', 'greater_than_or_equal_to', 'greater_than_or_equals'],
  eq: ['=', '==', 'equal', 'equals', 'equal_to'],
  neq: ['!=', '<>', 'ne', 'not_equal', 'not_equals', 'not_equal_to'],
};

const BY_SPELLING: ReadonlyMap<string, Operator> = new Map(
  OPERATORS.flatMap((operator) => [operator, ...SPELLINGS[operator]].map((spelling) => [spelling, operator] as const)),
);

/** Returns the operator that a spelling stands for; undefined for an unknown spelling. */
export function operatorOf(spelling: string): Operator | undefined {
  return BY_SPELLING.get(spelling.replaceAll('-', '_'));
}

/** Returns all spellings of an operator, the short name first. */
export function spellingsOf(operator: Operator): string[] {
  const spellings = [operator, ...SPELLINGS[operator]];
  return [...new Set(spellings.flatMap((spelling) => [spelling, spelling.replaceAll('_', '-')]))];
}

/** Whether an operator holds for an order: negative, zero or positive. */
const HOLDS: Readonly<Record<Operator, (order: number) => boolean>> = {
  lt: (order) => order < 0,
  lte: (order) => order <= 0,
  gt: (order) => order > 0,
  gte: (order) => order >= 0,
  eq: (order) => order === 0,
  neq: (order) => order !== 0,
};

/** Checks whether `actual op expected` holds, with exact decimals. */
export function holds(actual: string, op: Operator, expected: string): boolean {
  return HOLDS[op](compareDecimals(actual, expected));
}

const SECONDS = { hour: 3_600n, day: 86_400n, week: 604_800n } as const;

/**
 * Returns the beginning of a window of `count` periods that ends at `end`; undefined when it is before the earliest
 * representable time. A day has 24 hours, a week seven days. Months and years follow the UTC calendar: the window
 * begins at the same time of the same day, or of the last day of a shorter month.
 */
export function windowStart(end: Instant, count: number, period: TimePeriod): Instant | undefined {
  switch (period) {
    case 'hour':
    case 'day':
    case 'week':
      return { seconds: end.seconds - BigInt(count) * SECONDS[period], nanos: end.nanos };
    case 'month':
      return monthsBefore(end, count);
    case 'year':
      return monthsBefore(end, count * 12);
    default:
      return period satisfies never;
  }
}

function monthsBefore(end: Instant, months: number): Instant | undefined {
  const start = new Date(Number(end.seconds) * 1_000);
  const day = start.getUTCDate();
  start.setUTCDate(1);
  start.setUTCMonth(start.getUTCMonth() - months);
  if (Number.isNaN(start.getTime())) return undefined;
  const nextMonth = new Date(start);
  nextMonth.setUTCMonth(start.getUTCMonth() + 1, 0);
  start.setUTCDate(Math.min(day, nextMonth.getUTCDate()));
  return { seconds: BigInt(Math.floor(start.getTime() / 1_000)), nanos: end.nanos };
}

/** The value of a field in one currency, as a plain decimal in the form that `readDecimal` returns. */
export interface Balance {
  field: string;
  network_currency_id: string;
  value: string;
}

/** A transfer that was made or is to be made. */
export interface Transfer {
  network_currency_id: string;
  amount: string;
  at: Instant;
}

/** The facts by which a rule is evaluated; undefined `transfers` means that they are unknown. */
export interface Facts {
  balances: readonly Balance[];
  transfers: readonly Transfer[] | undefined;
  at: Instant;
}

/**
 * The result of one condition of a rule: whether `actual op expected` holds. A condition that cannot be evaluated does
 * not hold. `reason` explains that, or why no facts can change the result; null otherwise.
 */
export interface Explanation {
  /** The path of the condition in the rule, in REST names, such as `auto_transfer_rule.rule_logic.and[1]`. */
  path: string;
  field: string;
  op: Operator;
  expected: string | null;
  actual: string | null;
  result: boolean;
  reason: string | null;
}

/** Balances by currency and field. */
export type BalanceIndex = ReadonlyMap<string, readonly Balance[]>;

const keyOf = ({ network_currency_id: currencyId, field }: Pick<Balance, 'field' | 'network_currency_id'>) =>
  `${currencyId} ${field}`;

/** Returns the index in which the conditions of rules look balances up; it can serve many rules. */
export function indexOf(balances: readonly Balance[]): BalanceIndex {
  return Map.groupBy(balances, keyOf);
}

export interface Evaluation {
  fires: boolean;
  explanation: Explanation[];
}

type EvaluatedRule = WalletRuleContent & { status?: RuleStatus | undefined };

type IndexedFacts = Omit<Facts, 'balances'> & { balances: BalanceIndex };

const LOGIC_PATH = 'auto_transfer_rule.rule_logic';

/** The truth value of a condition tree; undefined when any of its conditions cannot be evaluated. */
type Truth = boolean | undefined;

/**
 * Evaluates a rule by the facts and explains each of its conditions, in their order. An automatic transfer fires when
 * its conditions hold. A limit fires, and so permits a transfer, when the transfers in the rule's currency within the
 * window, including that one, sum up to at most `max_amount`. A rule with a condition that cannot be evaluated never
 * fires. The object of the other rule type is ignored.
 */
export function evaluateRule(rule: EvaluatedRule, facts: Facts, balances = indexOf(facts.balances)): Evaluation {
  const explanation: Explanation[] = [];
  const truths = [
    ofType(rule, { ...facts, balances }, explanation),
    ofApproval(rule.sign_and_approve_rule, explanation),
    ofStatus(rule.status, explanation),
  ];
  return { fires: truths.every((truth) => truth === true), explanation };
}

function ofType(rule: EvaluatedRule, facts: IndexedFacts, explanation: Explanation[]): Truth {
  switch (rule.type) {
    case 'auto_transfer': {
      const { auto_transfer_rule: own } = rule;
      return own && ofLogic(own.rule_logic, LOGIC_PATH, facts, explanation);
    }
    case 'permissionless_transfer_limit': {
      const { permissionless_transfer_limit_rule: own, network_currency_id: currencyId } = rule;
      return own && ofLimit(own, currencyId, facts, explanation);
    }
    default:
      return rule.type satisfies never;
  }
}

/**
 * Evaluates a condition tree. It never short-circuits, so that every condition is explained and their order has no
 * effect.
 */
function ofLogic(logic: RuleLogic, path: string, facts: IndexedFacts, explanation: Explanation[]): Truth {
  if ('field' in logic) return ofCondition(logic, path, facts, explanation);
  if ('not' in logic) {
    const truth = ofLogic(logic.not, `${path}.not`, facts, explanation);
    return truth === undefined ? undefined : !truth;
  }
  const truths = childrenOf(logic, path).map(([child, at]) => ofLogic(child, at, facts, explanation));
  if (truths.includes(undefined)) return undefined;
  return 'and' in logic ? !truths.includes(false) : truths.includes(true);
}

/** Returns the members of a group with their paths. */
function childrenOf(group: Exclude<RuleLogic, Condition | { not: RuleLogic }>, path: string) {
  const [name, children] = 'and' in group ? (['and', group.and] as const) : (['or', group.or] as const);
  return children.map((child, index) => [child, `${path}.${name}[${index}]`] as const);
}

function ofCondition(
  condition: Condition,
  path: string,
  { balances }: IndexedFacts,
  explanation: Explanation[],
): Truth {
  const { field, op, value: expected } = condition;
  const [balance, ...otherBalances] = balances.get(keyOf(condition)) ?? [];
  if (balance === undefined || otherBalances.length > 0) {
    const reason = `${balance ? 'more than one balance is' : 'no balance is'} given for the field in this currency`;
    explanation.push({ path, field, op, expected, actual: null, result: false, reason });
    return undefined;
  }
  const result = holds(balance.value, op, expected);
  explanation.push({ path, field, op, expected, actual: balance.value, result, reason: null });
  return result;
}

function ofLimit(
  limit: PermissionlessTransferLimitRule,
  currencyId: string,
  { transfers, at }: IndexedFacts,
  explanation: Explanation[],
): Truth {
  const expected = limit.max_amount;
  const shared = { path: 'permissionless_transfer_limit_rule', field: 'max_amount', op: 'lte', expected } as const;
  if (transfers === undefined) {
    explanation.push({ ...shared, actual: null, result: false, reason: 'the transfers are missing' });
    return undefined;
  }
  const start = windowStart(at, limit.time_period_value, limit.time_period);
  const counted = transfers.filter(
    (transfer) =>
      transfer.network_currency_id === currencyId &&
      compareInstants(transfer.at, at) <= 0 &&
      (start === undefined || compareInstants(transfer.at, start) > 0),
  );
  const actual = sumOfDecimals(counted.map(({ amount }) => amount));
  const result = holds(actual, 'lte', expected);
  explanation.push({ ...shared, actual, result, reason: null });
  return result;
}

/** Fails when no priority can satisfy both bounds. Whether a given approver may approve is not evaluated here. */
function ofApproval(approval: SignAndApproveRule | undefined, explanation: Explanation[]): Truth {
  const { min_priority: least, max_priority: most } = approval ?? {};
  if (least === undefined || most === undefined || least <= most) return true;
  explanation.push({
    path: 'sign_and_approve_rule',
    field: 'min_priority',
    op: 'lte',
    expected: String(most),
    actual: String(least),
    result: false,
    reason: 'min_priority is above max_priority: no user can approve',
  });
  return false;
}

function ofStatus(status: RuleStatus | undefined, explanation: Explanation[]): Truth {
  if (status !== 'disabled') return true;
  const nothing = { expected: null, actual: null, result: false };
  explanation.push({ path: 'status', field: 'status', op: 'eq', ...nothing, reason: 'the rule is disabled' });
  return false;
}

/**
 * Returns the first condition that keeps a rule from firing, in the order of its explanation; undefined if it fires. A
 * condition that cannot be evaluated always does. Under `not` it is a condition that is true.
 */
export function firstUnmet(
  { type, auto_transfer_rule: transfer }: WalletRuleContent,
  explanation: readonly Explanation[],
): Explanation | undefined {
  const leaves = new Map(explanation.map((leaf) => [leaf.path, leaf]));
  const deciding =
    type === 'auto_transfer' && transfer
      ? unmetIn(transfer.rule_logic, LOGIC_PATH, true, leaves)
      : explanation.find(({ result }) => !result);
  return explanation.find((leaf) => leaf.reason !== null || leaf === deciding);
}

/** Returns the first condition because of which a condition tree does not have the wanted truth value. */
function unmetIn(
  logic: RuleLogic,
  path: string,
  expected: boolean,
  leaves: ReadonlyMap<string, Explanation>,
): Explanation | undefined {
  if ('field' in logic) {
    const leaf = leaves.get(path);
    return leaf && (leaf.reason !== null || leaf.result !== expected) ? leaf : undefined;
  }
  if ('not' in logic) return unmetIn(logic.not, `${path}.not`, !expected, leaves);
  const unmet = childrenOf(logic, path).map(([child, at]) => unmetIn(child, at, expected, leaves));
  const needsAll = 'and' in logic === expected;
  return needsAll || !unmet.includes(undefined) ? unmet.find((leaf) => leaf !== undefined) : undefined;
}

/** Something that a rule may contain but that can hardly be meant. `path` is that of the member, in REST names. */
export interface RuleWarning {
  path: string;
  message: string;
}

type OnChain = { chain: string } | undefined;

/** What a rule refers to; undefined where the tenant does not have it. */
export interface Referred {
  /** The wallet of the rule; undefined if it is not known either. */
  wallet: OnChain;
  network: OnChain;
  currency: { network_id: string } | undefined;
  target: OnChain;
}

/** Returns the warnings about a rule: what its wallet, network and currency cannot reach, and a required approval without an approver. */
export function warningsOf(rule: WalletRuleContent, { wallet, network, currency, target }: Referred): RuleWarning[] {
  const { type, auto_transfer_rule: transfer, sign_and_approve_rule: approval } = rule;
  const isTransfer = type === 'auto_transfer';
  const isElsewhere = (one: OnChain) => one && network && one.chain !== network.chain;
  const warnings: (readonly [isGiven: unknown, path: string, message: string])[] = [
    [!network, 'network_id', 'there is no such network'],
    [isElsewhere(wallet), 'network_id', `the wallet is on ${wallet?.chain}, but the network is on ${network?.chain}`],
    [!currency, 'network_currency_id', 'there is no such currency'],
    [
      currency && network && currency.network_id !== rule.network_id.toLowerCase(),
      'network_currency_id',
      'the currency belongs to another network',
    ],
    [isTransfer && !target, 'auto_transfer_rule.target_wallet_id', 'there is no such wallet'],
    [
      isTransfer && isElsewhere(target),
      'auto_transfer_rule.target_wallet_id',
      `the target wallet is on ${target?.chain}, but the network is on ${network?.chain}`,
    ],
    [
      isTransfer && transfer?.type === 'auto_with_approve' && !approval,
      'auto_transfer_rule.type',
      'the transfer waits for an approval, but the rule requires none: nobody can approve it',
    ],
  ];
  return warnings.filter(([isGiven]) => isGiven).map(([, path, message]) => ({ path, message }));
}

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
} from '../../tables/wallet-rules.entity.ts';

/** Spellings in words stand with `_`; `-` is taken in its place. */
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

/** The operator that a spelling means; undefined where it means none. */
export function operatorOf(spelling: string): Operator | undefined {
  return BY_SPELLING.get(spelling.replaceAll('-', '_'));
}

/** Every spelling of an operator, the short form first. */
export function spellingsOf(operator: Operator): string[] {
  const spellings = [operator, ...SPELLINGS[operator]];
  return [...new Set(spellings.flatMap((spelling) => [spelling, spelling.replaceAll('_', '-')]))];
}

/** Whether `actual op expected` holds, exactly. */
export function holds(actual: string, op: Operator, expected: string): boolean {
  const order = compareDecimals(actual, expected);
  switch (op) {
    case 'lt':
      return order < 0;
    case 'lte':
      return order <= 0;
    case 'gt':
      return order > 0;
    case 'gte':
      return order >= 0;
    case 'eq':
      return order === 0;
    case 'neq':
      return order !== 0;
    default:
      return op satisfies never;
  }
}

const SECONDS = { hour: 3_600n, day: 86_400n, week: 604_800n } as const;

/**
 * Where the window of `count` periods that ends at an instant begins; undefined: before every time there is. A day has 24
 * hours and a week seven days. A month or year is the calendar's in UTC: it begins at the same time of the same day, or of
 * the month's last day where the month has no such day.
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

/** What a field of a currency is worth; decimals are plain digits, as `readDecimal` gives them. */
export interface Balance {
  field: string;
  network_currency_id: string;
  value: string;
}

/** A transfer that was made, or is to be made. */
export interface Transfer {
  network_currency_id: string;
  amount: string;
  at: Instant;
}

/** What a rule is judged by. Without `transfers` it is not known which were made. */
export interface Facts {
  balances: readonly Balance[];
  transfers: readonly Transfer[] | undefined;
  at: Instant;
}

/**
 * How one condition of a rule came out: whether `actual op expected` holds. One that could not be evaluated does not, and
 * has a reason; so has one that no facts can change.
 */
export interface Explanation {
  /** Where it stands in the rule, in the REST names: `auto_transfer_rule.rule_logic.and[1]`. */
  path: string;
  field: string;
  op: Operator;
  expected: string | null;
  actual: string | null;
  result: boolean;
  reason: string | null;
}

export interface Evaluation {
  fires: boolean;
  explanation: Explanation[];
}

type EvaluatedRule = WalletRuleContent & { status?: RuleStatus };

/** The truth of a condition tree; undefined where one of its conditions cannot be evaluated, wherever it stands. */
type Truth = boolean | undefined;

/**
 * Judges a rule by the facts, and explains every condition of it in the order in which they stand. It fires where all
 * holds that must: an automatic transfer is made where its conditions hold; a limit lets a transfer pass where the
 * transfers of the rule's currency in the window, that one included, come to no more than `max_amount`. It fails closed:
 * with a condition that cannot be evaluated it does not fire, whatever the others say. The object of the other type is
 * not looked at.
 */
export function evaluateRule(rule: EvaluatedRule, facts: Facts): Evaluation {
  const explanation: Explanation[] = [];
  const truths = [
    ofType(rule, facts, explanation),
    ofApproval(rule.sign_and_approve_rule, explanation),
    ofStatus(rule.status, explanation),
  ];
  return { fires: truths.every((truth) => truth === true), explanation };
}

function ofType(rule: EvaluatedRule, facts: Facts, explanation: Explanation[]): Truth {
  switch (rule.type) {
    case 'auto_transfer': {
      const { auto_transfer_rule: own } = rule;
      return own && ofLogic(own.rule_logic, 'auto_transfer_rule.rule_logic', facts, explanation);
    }
    case 'permissionless_transfer_limit': {
      const { permissionless_transfer_limit_rule: own, network_currency_id: currencyId } = rule;
      return own && ofLimit(own, currencyId, facts, explanation);
    }
    default:
      return rule.type satisfies never;
  }
}

/** Nothing is skipped, so that the explanation is whole and the order of conditions is of no effect. */
function ofLogic(logic: RuleLogic, path: string, facts: Facts, explanation: Explanation[]): Truth {
  if ('field' in logic) return ofCondition(logic, path, facts, explanation);
  if ('not' in logic) {
    const truth = ofLogic(logic.not, `${path}.not`, facts, explanation);
    return truth === undefined ? undefined : !truth;
  }
  const [group, children] = 'and' in logic ? (['and', logic.and] as const) : (['or', logic.or] as const);
  const truths = children.map((child, index) => ofLogic(child, `${path}.${group}[${index}]`, facts, explanation));
  if (truths.includes(undefined)) return undefined;
  return group === 'and' ? !truths.includes(false) : truths.includes(true);
}

function ofCondition(condition: Condition, path: string, { balances }: Facts, explanation: Explanation[]): Truth {
  const { field, op, value: expected, network_currency_id: currencyId } = condition;
  const found = balances.filter((balance) => balance.field === field && balance.network_currency_id === currencyId);
  const [balance] = found;
  if (balance === undefined || found.length > 1) {
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
  { transfers, at }: Facts,
  explanation: Explanation[],
): Truth {
  const expected = limit.max_amount;
  const shared = { path: 'permissionless_transfer_limit_rule', field: 'max_amount', op: 'lte', expected } as const;
  if (transfers === undefined) {
    explanation.push({ ...shared, actual: null, result: false, reason: 'no transfers are given' });
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

/** Bounds that cross let nobody approve; others are for whoever approves, not for these facts. */
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
    reason: 'min_priority is above max_priority: nobody can approve',
  });
  return false;
}

function ofStatus(status: RuleStatus | undefined, explanation: Explanation[]): Truth {
  if (status !== 'disabled') return true;
  const nothing = { expected: null, actual: null, result: false };
  explanation.push({ path: 'status', field: 'status', op: 'eq', ...nothing, reason: 'the rule is disabled' });
  return false;
}
